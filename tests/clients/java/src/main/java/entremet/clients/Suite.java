package entremet.clients;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.ToLongFunction;
import java.util.function.UnaryOperator;
import java.util.zip.Adler32;

/** What both Java clients share: reading the suite, printing replies. The contract is in the README of the clients. */
final class Suite {
  static final int PORT = Integer.parseInt(System.getenv("SUITE_PORT"));
  static final String USER = System.getenv("SUITE_USER");
  static final String PASSWORD = System.getenv("SUITE_PASSWORD");
  /** Where the checks of clients of a cluster end; without it, those of one server are run. */
  static final String STOP = System.getenv("SUITE_STOP");

  /** What a client of a cluster trusts; without it, there is no TLS. */
  static final String CA = System.getenv("SUITE_CA");

  static final boolean RESP3 = "3".equals(System.getenv("SUITE_PROTOCOL"));

  private static final Gson JSON = new GsonBuilder().serializeNulls().create();

  /** A client as the suite needs it; errors of the server come back as values. */
  interface Raw {
    Object ask(byte[][] command);

    List<Object> askAll(List<byte[][]> commands);
  }

  /** A client of a cluster, one key at a time. */
  record Keys(
      BiConsumer<String, String> set, UnaryOperator<String> get, ToLongFunction<String> incr) {}

  /** A check in the client's own idiom. */
  interface Check {
    void run() throws Exception;
  }

  private Suite() {}

  static void run(Raw client) throws Exception {
    String text = Files.readString(Path.of(System.getenv("SUITE_FILE")));
    for (JsonElement element : JsonParser.parseString(text).getAsJsonArray()) {
      JsonObject one = element.getAsJsonObject();
      client.ask(new byte[][] {"FLUSHDB".getBytes(StandardCharsets.ISO_8859_1)});
      List<byte[][]> commands = new ArrayList<>();
      for (JsonElement step : one.getAsJsonArray("steps")) {
        commands.add(command(step.getAsJsonArray().get(0).getAsJsonArray()));
      }
      List<Object> replies = new ArrayList<>();
      if (one.has("pipeline")) {
        replies.addAll(client.askAll(commands));
      } else {
        for (byte[][] command : commands) {
          replies.add(client.ask(command));
        }
      }
      print("case", one.get("name").getAsString(), "replies", tell(replies));
    }
  }

  static void runTyped(Map<String, Check> checks) {
    checks.forEach(
        (name, check) -> {
          String problem = "";
          try {
            check.run();
          } catch (Exception | AssertionError error) {
            problem = error.toString();
          }
          print("case", name, "problem", problem);
        });
  }

  /** The checks of a client of a cluster; {@code pipeline} and {@code hashTag} are in its own idiom. */
  static Map<String, Check> clusterChecks(Keys client, Check pipeline, Check hashTag) {
    Map<String, Check> checks = new LinkedHashMap<>();
    checks.put(
        "cluster-keys",
        () -> {
          for (int i = 0; i < 200; i++) {
            client.set().accept("k" + i, Integer.toString(i));
          }
          for (int i = 0; i < 200; i++) {
            same(Integer.toString(i), client.get().apply("k" + i));
          }
        });
    checks.put("cluster-pipeline", pipeline);
    checks.put("cluster-hash-tag", hashTag);
    checks.put(
        "cluster-to-the-end",
        () -> {
          long[] counts = new long[32];
          while (!(Files.exists(Path.of(STOP)) && counts[31] > 0)) {
            for (int i = 0; i < counts.length; i++) {
              client.incr().applyAsLong("g" + i);
              counts[i]++;
            }
          }
          for (int i = 0; i < counts.length; i++) {
            same(Long.toString(counts[i]), client.get().apply("g" + i));
          }
        });
    return checks;
  }

  static void same(Object want, Object got) {
    if (!want.equals(got)) {
      throw new AssertionError("expected " + want + ", got " + got);
    }
  }

  private static void print(Object... pairs) {
    Map<Object, Object> line = new LinkedHashMap<>();
    for (int i = 0; i < pairs.length; i += 2) {
      line.put(pairs[i], pairs[i + 1]);
    }
    System.out.println(JSON.toJson(line));
  }

  private static byte[][] command(JsonArray args) {
    byte[][] command = new byte[args.size()][];
    for (int i = 0; i < command.length; i++) {
      JsonElement arg = args.get(i);
      if (arg.isJsonObject()) {
        JsonArray big = arg.getAsJsonObject().getAsJsonArray("repeat");
        command[i] = bytes(big.get(0).getAsString().repeat(big.get(1).getAsInt()));
      } else {
        command[i] = bytes(arg.getAsString());
      }
    }
    return command;
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  /** A reply as the JSON that every client program prints. */
  private static Object tell(Object reply) {
    if (reply instanceof byte[] data) {
      if (data.length <= 4096) {
        return new String(data, StandardCharsets.ISO_8859_1);
      }
      Adler32 sum = new Adler32();
      sum.update(data);
      return Map.of("length", data.length, "adler", sum.getValue());
    }
    if (reply instanceof Iterable<?> items) {
      List<Object> told = new ArrayList<>();
      items.forEach(item -> told.add(tell(item)));
      return told;
    }
    if (reply instanceof Map.Entry<?, ?> pair) {
      List<Object> told = new ArrayList<>();
      told.add(tell(pair.getKey()));
      told.add(tell(pair.getValue()));
      return told;
    }
    if (reply instanceof Map<?, ?> map) {
      List<Object> told = new ArrayList<>();
      map.entrySet().forEach(pair -> told.add(tell(pair)));
      return Map.of("map", told);
    }
    if (reply instanceof Throwable error) {
      return Map.of("error", String.valueOf(error.getMessage()));
    }
    return reply;
  }
}
