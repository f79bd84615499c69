package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// same fails with both values when they differ, or with the error that came instead of a value.
func same(got any, err error, want any) error {
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("expected %v, got %v", want, got)
	}
	return nil
}

var typedChecks = map[string]func(*redis.Client) error{
	"typed-set-get": func(client *redis.Client) error {
		if err := client.Set(background, "ts", "v", 100*time.Second).Err(); err != nil {
			return err
		}
		got, err := client.Get(background, "ts").Result()
		return same(got, err, "v")
	},
	"typed-hash": func(client *redis.Client) error {
		if err := client.HSet(background, "th", map[string]any{"a": 1, "b": "two"}).Err(); err != nil {
			return err
		}
		got, err := client.HGetAll(background, "th").Result()
		return same(got, err, map[string]string{"a": "1", "b": "two"})
	},
	"typed-sorted-set": func(client *redis.Client) error {
		members := []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}}
		if err := client.ZAdd(background, "tz", members...).Err(); err != nil {
			return err
		}
		got, err := client.ZRangeWithScores(background, "tz", 0, -1).Result()
		return same(got, err, members)
	},
	"typed-pipeline": func(client *redis.Client) error {
		var count *redis.IntCmd
		_, err := client.TxPipelined(background, func(pipe redis.Pipeliner) error {
			pipe.Set(background, "tp", 1, 0)
			count = pipe.Incr(background, "tp")
			return nil
		})
		return same(count.Val(), err, int64(2))
	},
	"typed-watch": func(client *redis.Client) error {
		err := client.Watch(background, func(tx *redis.Tx) error {
			if err := client.Set(background, "tw", 2, 0).Err(); err != nil {
				return err
			}
			_, err := tx.TxPipelined(background, func(pipe redis.Pipeliner) error {
				return pipe.Set(background, "tw", 3, 0).Err()
			})
			return err
		}, "tw")
		if !errors.Is(err, redis.TxFailedErr) {
			return fmt.Errorf("the watched key had changed, yet EXEC said %v", err)
		}
		return nil
	},
	"typed-refused-password": func(*redis.Client) error {
		refused := connect("wrong")
		defer refused.Close()
		if err := refused.Ping(background).Err(); err == nil {
			return errors.New("a wrong password was accepted")
		}
		return nil
	},
	"typed-many-connections": func(*redis.Client) error {
		clients := make([]*redis.Client, 50)
		for index := range clients {
			clients[index] = connect(os.Getenv("SUITE_PASSWORD"))
			defer clients[index].Close()
			if err := clients[index].Set(background, fmt.Sprintf("many:%d", index), index, 0).Err(); err != nil {
				return err
			}
		}
		got, err := clients[0].Get(background, "many:49").Result()
		return same(got, err, "49")
	},
}
