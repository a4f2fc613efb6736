//go:build !unix

package filestore

import (
	"errors"
	"os"
)

// lock cannot promise here that there is one owner.
func lock(string) (*os.File, error) {
	return nil, errors.New("this system has no file locks that end with their process")
}
