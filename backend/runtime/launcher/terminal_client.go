package main

import (
	"bytes"
	"net"
	"os"
	"syscall"
	"time"
)

const (
	pieceBytes      = 1 << 15
	scrollbackBytes = 1 << 20
	scrollbackSlack = 1 << 18 // it is cut when it is so much too long, since cutting moves it
)

// scrollback is the last bytes that the shell has written, by their number since its start.
type scrollback struct {
	first int
	kept  []byte
}

// end is the number of the byte that comes next.
func (s *scrollback) end() int { return s.first + len(s.kept) }

func (s *scrollback) add(data []byte) {
	s.kept = append(s.kept, data...)
	if len(s.kept) > scrollbackBytes+scrollbackSlack {
		cut := len(s.kept) - scrollbackBytes
		s.kept = s.kept[:copy(s.kept, s.kept[cut:])]
		s.first += cut
	}
}

// read is a copy of some bytes from that number on, which must still be kept.
func (s *scrollback) read(start int) []byte {
	rest := s.kept[start-s.first:]
	return bytes.Clone(rest[:min(pieceBytes, len(rest))])
}

// whole is a copy of all that is kept, from the start of a line on where something has been forgotten.
func (s *scrollback) whole() []byte {
	at := 0
	if s.first > 0 {
		at = bytes.IndexByte(s.kept[:min(pieceBytes, len(s.kept))], '\n') + 1
	}
	return bytes.Clone(s.kept[at:])
}

// attached is one client of a session: the descriptors that lead to it, and how far it has come.
type attached struct {
	control      *net.UnixConn
	source, sink *os.File
	at           int // the next byte of the scrollback for it; before the first it gets all
	movedAt      time.Time
	gone         bool
}

func attach(control *net.UnixConn, descriptors []int) (*attached, error) {
	for _, each := range descriptors {
		if err := syscall.SetNonblock(each, true); err != nil { // so that closing one wakes who waits for it
			return nil, err
		}
	}
	source, sink := os.NewFile(uintptr(descriptors[0]), "source"), os.NewFile(uintptr(descriptors[1]), "sink")
	return &attached{control: control, source: source, sink: sink, at: -1, movedAt: time.Now()}, nil
}

func (c *attached) close() {
	c.source.Close()
	c.sink.Close()
	c.control.Close()
}
