//go:build !unix

package upstream

func (c *conn) lend() {}

// await reads once, with nothing unconsumed.
func (c *conn) await() (n int, err error) { return c.fill(len(c.buf)) }
