package upstream

type decoding struct{}

func (d *decoding) next(b body) ([]byte, error) { return b.next() }
func (r *Response) decoded()                    {}
