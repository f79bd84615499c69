package entremet.clients;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.SetArgs;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TransactionResult;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.async.RedisAdvancedClusterAsyncCommands;
import io.lettuce.core.cluster.api.sync.RedisAdvancedClusterCommands;
import io.lettuce.core.protocol.ProtocolVersion;
import java.io.File;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Lettuce in its own idiom. It has no untyped command with an untyped reply that suits the neutral part of the suite,
 * so only the typed checks run.
 */
public final class LettuceSuite {
  private LettuceSuite() {}

  private static RedisURI address(String password) {
    return RedisURI.builder()
        .withHost("127.0.0.1")
        .withPort(Suite.PORT)
        .withSsl(Suite.CA != null)
        .withAuthentication(Suite.USER, password.toCharArray())
        .build();
  }

  private static ProtocolVersion protocol() {
    return Suite.RESP3 ? ProtocolVersion.RESP3 : ProtocolVersion.RESP2;
  }

  private static RedisClient client(String password) {
    RedisClient client = RedisClient.create(address(password));
    client.setOptions(
        ClientOptions.builder().protocolVersion(protocol()).autoReconnect(false).build());
    return client;
  }

  private static SslOptions trusted() {
    if (Suite.CA == null) {
      return SslOptions.create();
    }
    return SslOptions.builder().jdkSslProvider().trustManager(new File(Suite.CA)).build();
  }

  private static void cluster() {
    RedisClusterClient client = RedisClusterClient.create(address(Suite.PASSWORD));
    client.setOptions(
        ClusterClientOptions.builder().protocolVersion(protocol()).sslOptions(trusted()).build());
    try (StatefulRedisClusterConnection<String, String> connection = client.connect()) {
      RedisAdvancedClusterCommands<String, String> keys = connection.sync();
      Suite.same(3, connection.getPartitions().size());
      Suite.runTyped(
          Suite.clusterChecks(
              new Suite.Keys(keys::set, keys::get, keys::incr),
              () -> clusterPipeline(connection.async()),
              () -> severalKeys(keys)));
    }
    client.shutdown();
  }

  private static void clusterPipeline(RedisAdvancedClusterAsyncCommands<String, String> cluster)
      throws Exception {
    List<RedisFuture<Long>> sent = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      sent.add(cluster.incr("p" + i));
    }
    for (RedisFuture<Long> one : sent) {
      Suite.same(1L, one.get(10, TimeUnit.SECONDS));
    }
  }

  /** Keys of several slots, too, for Lettuce splits what has them. */
  private static void severalKeys(RedisAdvancedClusterCommands<String, String> cluster) {
    Suite.same("OK", cluster.mset(Map.of("{t}a", "1", "{t}b", "2", "c", "3", "d", "4")));
    List<KeyValue<String, String>> want = new ArrayList<>();
    for (String[] pair : new String[][] {{"{t}a", "1"}, {"c", "3"}, {"{t}b", "2"}, {"d", "4"}}) {
      want.add(KeyValue.just(pair[0], pair[1]));
    }
    Suite.same(want, cluster.mget("{t}a", "c", "{t}b", "d"));
    Suite.same(4L, cluster.del("{t}a", "c", "{t}b", "d"));
  }

  public static void main(String[] arguments) {
    if (Suite.STOP != null) {
      cluster();
      return;
    }
    RedisClient client = client(Suite.PASSWORD);
    try (StatefulRedisConnection<String, String> connection = client.connect()) {
      connection.sync().flushdb();
      Suite.runTyped(checks(client, connection));
    }
    client.shutdown();
  }

  private static Map<String, Suite.Check> checks(
      RedisClient client, StatefulRedisConnection<String, String> connection) {
    RedisCommands<String, String> redis = connection.sync();
    Map<String, Suite.Check> checks = new LinkedHashMap<>();
    checks.put(
        "typed-set-get",
        () -> {
          Suite.same("OK", redis.set("ts", "v", SetArgs.Builder.ex(100)));
          Suite.same("v", redis.get("ts"));
        });
    checks.put(
        "typed-hash",
        () -> {
          Suite.same(2L, redis.hset("th", Map.of("a", "1", "b", "two")));
          Suite.same(Map.of("a", "1", "b", "two"), redis.hgetall("th"));
        });
    checks.put(
        "typed-sorted-set",
        () -> {
          Suite.same(2L, redis.zadd("tz", 1.0, "a", 2.5, "b"));
          Suite.same(
              List.of(ScoredValue.just(1.0, "a"), ScoredValue.just(2.5, "b")),
              redis.zrangeWithScores("tz", 0, -1));
        });
    checks.put("typed-pipeline", () -> pipeline(connection));
    checks.put(
        "typed-watch",
        () -> {
          redis.watch("tw");
          try (StatefulRedisConnection<String, String> other = client.connect()) {
            other.sync().set("tw", "2");
          }
          redis.multi();
          redis.set("tw", "3");
          TransactionResult result = redis.exec();
          Suite.same(true, result.wasDiscarded());
        });
    checks.put("typed-refused-password", LettuceSuite::refusedPassword);
    checks.put("typed-many-connections", () -> manyConnections(client));
    return checks;
  }

  private static void pipeline(StatefulRedisConnection<String, String> connection) throws Exception {
    RedisAsyncCommands<String, String> redis = connection.async();
    connection.setAutoFlushCommands(false);
    List<RedisFuture<?>> sent = new ArrayList<>();
    sent.add(redis.set("tp", "1"));
    sent.add(redis.incr("tp"));
    sent.add(redis.get("tp"));
    connection.flushCommands();
    connection.setAutoFlushCommands(true);
    List<Object> got = new ArrayList<>();
    for (RedisFuture<?> one : sent) {
      got.add(one.get(10, TimeUnit.SECONDS));
    }
    Suite.same(List.of("OK", 2L, "2"), got);
  }

  private static void refusedPassword() {
    RedisClient refused = client("wrong");
    try (StatefulRedisConnection<String, String> connection = refused.connect()) {
      connection.sync().ping();
    } catch (RedisConnectionException | RedisCommandExecutionException error) {
      return;
    } finally {
      refused.shutdown();
    }
    throw new AssertionError("a wrong password was accepted");
  }

  private static void manyConnections(RedisClient client) {
    List<StatefulRedisConnection<String, String>> connections = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      connections.add(client.connect());
      connections.get(i).sync().set("many:" + i, Integer.toString(i));
    }
    Suite.same("49", connections.get(0).sync().get("many:49"));
    connections.forEach(StatefulRedisConnection::close);
  }
}
