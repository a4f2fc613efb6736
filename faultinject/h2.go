package faultinject

import (
	"io"
	"net"
)

func (s *Server) serveH2(c net.Conn, r io.Reader) { c.Close() }
