package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
)

func connectCluster() *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:     []string{"127.0.0.1:" + os.Getenv("SUITE_PORT")},
		Username:  os.Getenv("SUITE_USER"),
		Password:  os.Getenv("SUITE_PASSWORD"),
		Protocol:  must(strconv.Atoi(os.Getenv("SUITE_PROTOCOL"))),
		TLSConfig: encrypted(),
	})
}

// encrypted trusts the certificate in the file SUITE_CA; without one there is no TLS.
func encrypted() *tls.Config {
	file := os.Getenv("SUITE_CA")
	if file == "" {
		return nil
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(must(os.ReadFile(file)))
	return &tls.Config{RootCAs: trusted}
}

var clusterChecks = map[string]func(*redis.ClusterClient) error{
	"cluster-keys": func(client *redis.ClusterClient) error {
		for number := range 200 {
			if err := client.Set(background, fmt.Sprintf("k%d", number), number, 0).Err(); err != nil {
				return err
			}
		}
		for number := range 200 {
			got, err := client.Get(background, fmt.Sprintf("k%d", number)).Result()
			if err := same(got, err, strconv.Itoa(number)); err != nil {
				return err
			}
		}
		masters, err := client.ClusterSlots(background).Result()
		nodes := map[string]bool{}
		for _, slots := range masters {
			nodes[slots.Nodes[0].Addr] = true
		}
		return same(len(nodes), err, 3)
	},
	"cluster-pipeline": func(client *redis.ClusterClient) error {
		counts := make([]*redis.IntCmd, 200)
		_, err := client.Pipelined(background, func(pipe redis.Pipeliner) error {
			for number := range counts {
				counts[number] = pipe.Incr(background, fmt.Sprintf("p%d", number))
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, count := range counts {
			if err := same(count.Val(), count.Err(), int64(1)); err != nil {
				return err
			}
		}
		return nil
	},
	"cluster-hash-tag": func(client *redis.ClusterClient) error {
		if err := client.MSet(background, "{t}a", 1, "{t}b", 2).Err(); err != nil {
			return err
		}
		var second *redis.IntCmd
		_, err := client.TxPipelined(background, func(pipe redis.Pipeliner) error {
			pipe.Incr(background, "{t}a")
			second = pipe.Incr(background, "{t}b")
			return nil
		})
		if err := same(second.Val(), err, int64(3)); err != nil {
			return err
		}
		got, err := client.MGet(background, "{t}a", "{t}b").Result()
		return same(got, err, []any{"2", "3"})
	},
	"cluster-to-the-end": func(client *redis.ClusterClient) error {
		counts := make([]int, 32)
		for stopped := false; !stopped || counts[31] == 0; {
			for number := range counts {
				if err := client.Incr(background, fmt.Sprintf("g%d", number)).Err(); err != nil {
					return err
				}
				counts[number]++
			}
			_, err := os.Stat(os.Getenv("SUITE_STOP"))
			stopped = err == nil
		}
		for number, count := range counts {
			got, err := client.Get(background, fmt.Sprintf("g%d", number)).Int()
			if err := same(got, err, count); err != nil {
				return err
			}
		}
		return nil
	},
}
