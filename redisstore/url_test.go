package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestURLs(t *testing.T) {
	for _, c := range []struct {
		url   string
		addrs string
		want  string // user password db master cluster tls
	}{
		{"redis://h", "h:6379", "  0  false false"},
		{"redis://h:7000/3", "h:7000", "  3  false false"},
		{"redis://user:pa%40ss%2Fw%3A@h/", "h:6379", "user pa@ss/w: 0  false false"},
		{"redis://:pa@ss@h", "h:6379", " pa@ss 0  false false"},
		{"redis://user@h", "h:6379", "user  0  false false"},
		{"redis://[::1]", "[::1]:6379", "  0  false false"},
		{"rediss://[::1]:7000", "[::1]:7000", "  0  false true"},
		{"redis+sentinel://u:p@a,b:7,[::1]/mymaster", "a:26379 b:7 [::1]:26379", "u p 0 mymaster false false"},
		{"redis+sentinel://a/mymaster/5?sentinel_user=x&sentinel_password=%25y", "a:26379", "  5 mymaster false false"},
		{"rediss+sentinel://a/m", "a:26379", "  0 m false true"},
		{"redis+cluster://a,b:7", "a:6379 b:7", "  0  true false"},
		{"redis+cluster://a/0", "a:6379", "  0  true false"},
		{"rediss+cluster://:p@a?server_name=redis.example", "a:6379", " p 0  true true"},
	} {
		o, err := ParseURL(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
			continue
		}
		got := fmt.Sprintf("%s %s %d %s %v %v", o.Username, o.Password, o.DB, o.MasterName, o.IsClusterMode, o.TLSConfig != nil)
		if got != c.want || !slices.Equal(o.Addrs, strings.Fields(c.addrs)) {
			t.Errorf("%s: %q at %q, want %q at %s", c.url, got, o.Addrs, c.want, c.addrs)
		}
	}
	o, err := ParseURL("redis+sentinel://u:p@a/m?sentinel_user=x&sentinel_password=%25y")
	if err != nil || o.SentinelUsername != "x" || o.SentinelPassword != "%y" {
		t.Errorf("the credentials of Sentinel: %+v, %v", o, err)
	}
	o, err = ParseURL("rediss://h?server_name=redis.example")
	if err != nil || o.TLSConfig.ServerName != "redis.example" {
		t.Errorf("the server's name: %+v, %v", o, err)
	}
}

// Each of these holds a secret somewhere. The error must help without it.
func TestBadURLs(t *testing.T) {
	for url, says := range map[string]string{
		"":                                   "must begin with",
		"s3cret":                             "must begin with",
		"http://u:s3cret@h":                  "must begin with",
		"redis:/u:s3cret@h":                  "must begin with",
		"redis://u:s3cret@":                  "host is missing",
		"redis://u:s3cret@h:port":            "port",
		"redis://u:s3cret@h:0":               "port",
		"redis://u:s3cret@h:70000":           "port",
		"redis://u:s3cret@::1":               "brackets",
		"redis://u:s3cret%zz@h":              "%25",
		"redis://u:s3cret/x@h":               "port", // a slash in the password
		"redis://u:s3cret@a,b":               "redis+cluster",
		"redis://u:s3cret@h/db":              "number of a database",
		"redis://u:s3cret@h/-1":              "number of a database",
		"redis://u:s3cret@h?password=s3":     "it knows",
		"redis://h?%zz=s3cret":               "cannot be read",
		"redis://h?ca=s3cret":                "rediss",
		"redis://h?sentinel_user=s3cret":     "for Sentinel",
		"redis+sentinel://u:s3cret@h":        "master",
		"redis+sentinel://u:s3cret@h/m/x":    "number of a database",
		"redis+cluster://u:s3cret@h/1":       "one database",
		"rediss://u:s3cret@h?cert=c":         "go together",
		"rediss://u:s3cret@h?ca=nowhere":     "ca:",
		"rediss://u:s3cret@h?ca=url_test.go": "no certificate",
		"rediss://u:s3cret@h?cert=a&key=b":   "cert and key",
	} {
		o, err := ParseURL(url)
		if err == nil {
			t.Errorf("%s: %+v", url, o)
			continue
		}
		if strings.Contains(err.Error(), "s3") {
			t.Errorf("%s: the error tells the secret: %v", url, err)
		}
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want something about %q", url, err, says)
		}
	}
}
