package entremet.clients;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import redis.clients.jedis.ClusterPipeline;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.resps.Tuple;

/** Jedis's part of the common suite. */
public final class JedisSuite {
  private JedisSuite() {}

  private static DefaultJedisClientConfig config(String password, SSLSocketFactory tls) {
    return DefaultJedisClientConfig.builder()
        .user(Suite.USER)
        .password(password)
        .protocol(Suite.RESP3 ? RedisProtocol.RESP3 : RedisProtocol.RESP2)
        // On a busy machine its own two seconds are short.
        .connectionTimeoutMillis(20_000)
        .socketTimeoutMillis(20_000)
        .ssl(tls != null)
        .sslSocketFactory(tls)
        .build();
  }

  /** Connections that trust the certificate in a file; none: there is no TLS. */
  private static SSLSocketFactory trusting(String file) throws Exception {
    if (file == null) {
      return null;
    }
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream in = Files.newInputStream(Path.of(file))) {
      store.setCertificateEntry(
          "ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
    }
    TrustManagerFactory trust =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return context.getSocketFactory();
  }

  private static Jedis connect(String password) {
    return new Jedis(new HostAndPort("127.0.0.1", Suite.PORT), config(password, null));
  }

  private static ProtocolCommand name(byte[][] command) {
    return () -> command[0];
  }

  private static byte[][] rest(byte[][] command) {
    return Arrays.copyOfRange(command, 1, command.length);
  }

  private record Raw(Jedis jedis) implements Suite.Raw {
    @Override
    public Object ask(byte[][] command) {
      try {
        return jedis.sendCommand(name(command), rest(command));
      } catch (JedisDataException error) {
        return error;
      }
    }

    @Override
    public List<Object> askAll(List<byte[][]> commands) {
      Pipeline pipeline = jedis.pipelined();
      List<Response<Object>> pending = new ArrayList<>();
      for (byte[][] command : commands) {
        pending.add(pipeline.sendCommand(name(command), rest(command)));
      }
      pipeline.sync();
      List<Object> replies = new ArrayList<>();
      for (Response<Object> response : pending) {
        try {
          replies.add(response.get());
        } catch (JedisDataException error) {
          replies.add(error);
        }
      }
      return replies;
    }
  }

  private static void clusterPipeline(JedisCluster cluster) {
    List<Response<Long>> sent = new ArrayList<>();
    try (ClusterPipeline pipeline = cluster.pipelined()) {
      for (int i = 0; i < 200; i++) {
        sent.add(pipeline.incr("p" + i));
      }
    }
    sent.forEach(response -> Suite.same(1L, response.get()));
  }

  private static void hashTag(JedisCluster cluster) {
    Suite.same("OK", cluster.mset("{t}a", "1", "{t}b", "2"));
    Suite.same(2L, cluster.incr("{t}a"));
    Suite.same(List.of("2", "2"), cluster.mget("{t}a", "{t}b"));
  }

  public static void main(String[] arguments) throws Exception {
    if (Suite.STOP != null) {
      Set<HostAndPort> nodes = Set.of(new HostAndPort("127.0.0.1", Suite.PORT));
      SSLSocketFactory tls = trusting(Suite.CA);
      try (JedisCluster cluster = new JedisCluster(nodes, config(Suite.PASSWORD, tls))) {
        Suite.same(3, cluster.getClusterNodes().size());
        Suite.runTyped(
            Suite.clusterChecks(
                new Suite.Keys(cluster::set, cluster::get, cluster::incr),
                () -> clusterPipeline(cluster),
                () -> hashTag(cluster)));
      }
      return;
    }
    try (Jedis jedis = connect(Suite.PASSWORD)) {
      Suite.run(new Raw(jedis));
      Suite.runTyped(checks(jedis));
    }
  }

  private static Map<String, Suite.Check> checks(Jedis jedis) {
    Map<String, Suite.Check> checks = new LinkedHashMap<>();
    checks.put(
        "typed-set-get",
        () -> {
          Suite.same("OK", jedis.set("ts", "v", SetParams.setParams().ex(100)));
          Suite.same("v", jedis.get("ts"));
        });
    checks.put(
        "typed-hash",
        () -> {
          Suite.same(2L, jedis.hset("th", Map.of("a", "1", "b", "two")));
          Suite.same(Map.of("a", "1", "b", "two"), jedis.hgetAll("th"));
        });
    checks.put(
        "typed-sorted-set",
        () -> {
          Suite.same(2L, jedis.zadd("tz", Map.of("a", 1.0, "b", 2.5)));
          Suite.same(
              List.of(new Tuple("a", 1.0), new Tuple("b", 2.5)), jedis.zrangeWithScores("tz", 0, -1));
        });
    checks.put(
        "typed-pipeline",
        () -> {
          Transaction transaction = jedis.multi();
          transaction.set("tp", "1");
          transaction.incr("tp");
          Suite.same(List.of("OK", 2L), transaction.exec());
        });
    checks.put("typed-watch", () -> watch(jedis));
    checks.put("typed-refused-password", JedisSuite::refusedPassword);
    checks.put("typed-many-connections", JedisSuite::manyConnections);
    return checks;
  }

  private static void watch(Jedis jedis) {
    jedis.watch("tw");
    try (Jedis other = connect(Suite.PASSWORD)) {
      other.set("tw", "2");
    }
    Transaction transaction = jedis.multi();
    transaction.set("tw", "3");
    if (transaction.exec() != null) {
      throw new AssertionError("the watched key had changed");
    }
  }

  private static void refusedPassword() {
    try (Jedis refused = connect("wrong")) {
      refused.ping();
    } catch (JedisDataException error) {
      return;
    }
    throw new AssertionError("a wrong password was accepted");
  }

  private static void manyConnections() {
    List<Jedis> clients = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      clients.add(connect(Suite.PASSWORD));
      clients.get(i).set("many:" + i, Integer.toString(i));
    }
    Suite.same("49", clients.get(0).get("many:49"));
    clients.forEach(Jedis::close);
  }
}
