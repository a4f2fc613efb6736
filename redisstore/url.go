package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Schemes are the beginnings of a URL that [ParseURL] knows. The ones with two s
// use TLS.
var Schemes = []string{
	"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster",
}

// ParseURL reads where Redis is:
//
//	redis://[user:password@]host[:6379][/db]
//	redis+sentinel://[user:password@]host[:26379][,host...]/master[/db]
//	redis+cluster://[user:password@]host[:6379][,host...]
//
// User and password are those of Redis (ACL); "redis://:password@host" and
// "redis://user@host" work too. After a question mark may follow, for Sentinel,
// sentinel_user and sentinel_password; with TLS, ca, cert and key (files, PEM)
// and server_name. Percent-encoding is understood. No error shows a password, nor
// anything else that might hold one.
func ParseURL(s string) (*redis.UniversalOptions, error) {
	o, err := parse(s)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	return o, nil
}

// parse takes the URL apart by hand: net/url refuses lists of hosts, and its
// errors quote what they were given.
func parse(s string) (*redis.UniversalOptions, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || !slices.Contains(Schemes, scheme) {
		return nil, fmt.Errorf("it must begin with one of %s://", strings.Join(Schemes, "://, "))
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	o := &redis.UniversalOptions{IsClusterMode: strings.HasSuffix(scheme, "+cluster")}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		var err1, err2 error
		o.Username, err1 = url.PathUnescape(user)
		o.Password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return nil, errors.New("user or password: a percent sign that encodes nothing; write it as %25")
		}
		authority = authority[at+1:]
	}
	sentinel := strings.HasSuffix(scheme, "+sentinel")
	port := "6379"
	if sentinel {
		port = "26379"
	}
	for _, h := range strings.Split(authority, ",") {
		addr, err := address(h, port)
		if err != nil {
			return nil, err
		}
		o.Addrs = append(o.Addrs, addr)
	}
	if len(o.Addrs) > 1 && !sentinel && !o.IsClusterMode {
		return nil, fmt.Errorf("several hosts need %s+sentinel:// or %s+cluster://", scheme, scheme)
	}
	if err := place(o, sentinel, strings.Trim(path, "/")); err != nil {
		return nil, err
	}
	return o, options(o, strings.HasPrefix(scheme, "rediss"), sentinel, query)
}

func address(h, port string) (string, error) {
	host := h
	if strings.HasPrefix(h, "[") && strings.HasSuffix(h, "]") {
		host = h[1 : len(h)-1]
	} else if hst, p, err := net.SplitHostPort(h); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", errors.New("a port must be a number from 1 to 65535; is a character of the password not percent-encoded?")
		}
		host, port = hst, p
	} else if strings.Contains(h, ":") {
		return "", errors.New("a host cannot be read; write an IPv6 address in brackets, and encode : / ? @ in a password")
	}
	if host == "" {
		return "", errors.New("a host is missing")
	}
	return net.JoinHostPort(host, port), nil
}

// place reads the path: the master's name and the database.
func place(o *redis.UniversalOptions, sentinel bool, path string) error {
	db := path
	if sentinel {
		name, rest, _ := strings.Cut(path, "/")
		if name == "" {
			return errors.New("the path must name the master that Sentinel watches: …/mymaster")
		}
		o.MasterName, db = name, rest
	}
	if db == "" {
		return nil
	}
	n, err := strconv.Atoi(db)
	switch {
	case err != nil || n < 0:
		return errors.New("the path must be the number of a database")
	case n > 0 && o.IsClusterMode:
		return errors.New("a cluster has one database, number 0")
	}
	o.DB = n
	return nil
}

func options(o *redis.UniversalOptions, secure, sentinel bool, query string) error {
	q, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("what follows the question mark cannot be read")
	}
	var ca, cert, key, name string
	for k, v := range q {
		var to *string
		switch k {
		case "sentinel_user":
			to = &o.SentinelUsername
		case "sentinel_password":
			to = &o.SentinelPassword
		case "ca":
			to = &ca
		case "cert":
			to = &cert
		case "key":
			to = &key
		case "server_name":
			to = &name
		default:
			return errors.New("after the question mark it knows sentinel_user, sentinel_password, ca, cert, key and server_name only")
		}
		if strings.HasPrefix(k, "sentinel") && !sentinel {
			return fmt.Errorf("%s is for Sentinel", k)
		}
		if !strings.HasPrefix(k, "sentinel") && !secure {
			return fmt.Errorf("%s needs TLS: write rediss in place of redis", k)
		}
		*to = v[len(v)-1]
	}
	if !secure {
		return nil
	}
	o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		o.TLSConfig.RootCAs = x509.NewCertPool()
		if !o.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca: no certificate in %s", ca)
		}
	}
	if (cert == "") != (key == "") {
		return errors.New("cert and key go together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("cert and key: %w", err)
		}
		o.TLSConfig.Certificates = []tls.Certificate{pair}
	}
	return nil
}
