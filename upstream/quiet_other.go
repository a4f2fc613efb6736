//go:build !unix

package upstream

func (c *conn) watch() {}

// quiet cannot look into a socket here without taking from it; IdleConnTimeout alone keeps stale connections away.
func (c *conn) quiet() bool { return true }
