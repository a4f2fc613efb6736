package jsonfold

// Block is a part of a document that events name by an index, with the text that will
// be one of its members when it is whole.
type Block struct {
	Index int64
	Value *Value
	Input []byte // decoded
}

// Blocks stand in the order in which they began.
type Blocks []*Block

// Open appends a block that begins.
func (bs *Blocks) Open(index int64) *Block {
	b := &Block{Index: index, Value: New()}
	*bs = append(*bs, b)
	return b
}

// Newest is the last block that began under an index, nil if none did.
func (bs Blocks) Newest(index int64) *Block {
	for i := len(bs) - 1; i >= 0; i-- {
		if bs[i].Index == index {
			return bs[i]
		}
	}
	return nil
}

// Size is that of all blocks, in bytes.
func (bs Blocks) Size() (n int) {
	for _, b := range bs {
		n += b.Value.Size() + len(b.Input)
	}
	return n
}
