package entremet.clients;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB on the Redis data model that its users know: a hash per record, and one sorted set whose scores order the keys
 * so that a range scan can start anywhere.
 */
public final class YcsbBinding extends DB {
  private static final String INDEX = "_indices";

  private Jedis jedis;

  @Override
  public void init() throws DBException {
    Properties settings = getProperties();
    try {
      DefaultJedisClientConfig config =
          DefaultJedisClientConfig.builder()
              .user(settings.getProperty("redis.user"))
              .password(settings.getProperty("redis.password"))
              .build();
      int port = Integer.parseInt(settings.getProperty("redis.port"));
      jedis = new Jedis(new HostAndPort("127.0.0.1", port), config);
    } catch (JedisException error) {
      throw new DBException(error);
    }
  }

  @Override
  public void cleanup() {
    jedis.close();
  }

  /** The place of a key in the index: any number that spreads keys evenly and is the same in every run. */
  private static double score(String key) {
    return key.hashCode();
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    Map<String, String> found;
    if (fields == null) {
      found = jedis.hgetAll(key);
    } else {
      found = new HashMap<>();
      String[] names = fields.toArray(new String[0]);
      List<String> values = jedis.hmget(key, names);
      for (int i = 0; i < names.length; i++) {
        if (values.get(i) != null) {
          found.put(names[i], values.get(i));
        }
      }
    }
    result.putAll(StringByteIterator.getByteIteratorMap(found));
    return found.isEmpty() ? Status.NOT_FOUND : Status.OK;
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    jedis.hset(key, StringByteIterator.getStringMap(values));
    jedis.zadd(INDEX, score(key), key);
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    jedis.hset(key, StringByteIterator.getStringMap(values));
    return Status.OK;
  }

  @Override
  public Status delete(String table, String key) {
    jedis.zrem(INDEX, key);
    return jedis.del(key) == 1 ? Status.OK : Status.NOT_FOUND;
  }

  @Override
  public Status scan(
      String table,
      String start,
      int count,
      Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    for (String key : jedis.zrangeByScore(INDEX, score(start), Double.POSITIVE_INFINITY, 0, count)) {
      HashMap<String, ByteIterator> record = new HashMap<>();
      read(table, key, fields, record);
      result.add(record);
    }
    return Status.OK;
  }
}
