package redisstore

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	hush()
	goleak.VerifyTestMain(m)
}
