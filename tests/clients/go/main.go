// go-redis's part of the common suite. The contract of a client program is in ../README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/adler32"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

type suiteCase struct {
	Name     string               `json:"name"`
	Pipeline bool                 `json:"pipeline"`
	Steps    [][2]json.RawMessage `json:"steps"`
}

var background = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func connect(password string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:       "127.0.0.1:" + os.Getenv("SUITE_PORT"),
		Username:   os.Getenv("SUITE_USER"),
		Password:   password,
		Protocol:   must(strconv.Atoi(os.Getenv("SUITE_PROTOCOL"))),
		MaxRetries: -1,
	})
}

// latin1 turns the code points of the suite, all below 256, into the bytes that they stand for.
func latin1(text string) string {
	bytes := make([]byte, 0, len(text))
	for _, point := range text {
		bytes = append(bytes, byte(point))
	}
	return string(bytes)
}

func command(raw json.RawMessage) []any {
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		panic(err)
	}
	args := make([]any, 0, len(parts))
	for _, part := range parts {
		var text string
		if json.Unmarshal(part, &text) == nil {
			args = append(args, latin1(text))
			continue
		}
		var big struct{ Repeat [2]any }
		if err := json.Unmarshal(part, &big); err != nil {
			panic(err)
		}
		args = append(args, strings.Repeat(latin1(big.Repeat[0].(string)), int(big.Repeat[1].(float64))))
	}
	return args
}

// tell turns a reply into the JSON that every client program prints.
func tell(reply any) any {
	switch value := reply.(type) {
	case string:
		if len(value) > 4096 {
			return map[string]any{"length": len(value), "adler": adler32.Checksum([]byte(value))}
		}
		points := make([]rune, len(value))
		for index := range len(value) {
			points[index] = rune(value[index])
		}
		return string(points)
	case []any:
		items := make([]any, len(value))
		for index, item := range value {
			items[index] = tell(item)
		}
		return items
	case map[any]any:
		pairs := [][2]any{}
		for key, item := range value {
			pairs = append(pairs, [2]any{tell(key), tell(item)})
		}
		return map[string]any{"map": pairs}
	case error:
		if errors.Is(value, redis.Nil) {
			return nil
		}
		return map[string]any{"error": value.Error()}
	default:
		return reply
	}
}

func told(reply any, err error) any {
	if err != nil {
		return tell(err)
	}
	return tell(reply)
}

func report(line map[string]any) {
	fmt.Println(string(must(json.Marshal(line))))
}

func runCase(conn *redis.Conn, one suiteCase) []any {
	replies := []any{}
	if !one.Pipeline {
		for _, step := range one.Steps {
			replies = append(replies, told(conn.Do(background, command(step[0])...).Result()))
		}
		return replies
	}
	pipeline := conn.Pipeline()
	sent := []*redis.Cmd{}
	for _, step := range one.Steps {
		sent = append(sent, pipeline.Do(background, command(step[0])...))
	}
	// Exec returns the first error of the pipeline; each command keeps its own.
	_, _ = pipeline.Exec(background)
	for _, one := range sent {
		replies = append(replies, told(one.Result()))
	}
	return replies
}

func main() {
	if os.Getenv("SUITE_STOP") != "" {
		runChecks(clusterChecks, connectCluster())
		return
	}
	var suite []suiteCase
	if err := json.Unmarshal(must(os.ReadFile(os.Getenv("SUITE_FILE"))), &suite); err != nil {
		panic(err)
	}
	client := connect(os.Getenv("SUITE_PASSWORD"))
	conn := client.Conn()
	for _, one := range suite {
		must(conn.FlushDB(background).Result())
		report(map[string]any{"case": one.Name, "replies": runCase(conn, one)})
	}
	runChecks(typedChecks, client)
}

func runChecks[C any](checks map[string]func(C) error, client C) {
	names := []string{}
	for name := range checks {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		problem := ""
		if err := checks[name](client); err != nil {
			problem = err.Error()
		}
		report(map[string]any{"case": name, "problem": problem})
	}
}
