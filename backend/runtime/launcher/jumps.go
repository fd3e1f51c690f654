package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	firstLine = 30 * time.Second // for the line with the key
	lineBytes = 16 << 10         // longer than any public key
)

// arrival is a connection that no sshd has yet; keys is the file of the only key that its sshd is to accept, or empty for
// those of the plan.
type arrival struct {
	connection *os.File
	keys       string
}

// jumps accepts clients of the gateway whose own SSH comes here. Counterpart: pai_backend.engine.jumps.
func (s *server) jumps() error {
	if err := os.Remove(jumpSocket); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.RemoveAll(jumpKeys); err != nil {
		return err
	}
	if err := os.Mkdir(jumpKeys, 0o700); err != nil {
		return err
	}
	listener, err := net.Listen("unix", jumpSocket)
	if err != nil {
		return err
	}
	go func() {
		for number := 0; ; number++ {
			connection, err := listener.Accept()
			if err != nil {
				say("a jump could not come in: %v", err)
				time.Sleep(firstPause)
				continue
			}
			go s.jump(connection.(*net.UnixConn), filepath.Join(jumpKeys, fmt.Sprint(number)))
		}
	}()
	return nil
}

// jump reads the line with the key, and not a byte of what follows, and hands the rest over.
func (s *server) jump(connection *net.UnixConn, keys string) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(firstLine))
	line, one := []byte{}, make([]byte, 1)
	for len(line) < lineBytes {
		if _, err := connection.Read(one); err != nil {
			say("a jump ended before its key: %v", err)
			return
		}
		if one[0] == '\n' {
			break
		}
		line = append(line, one[0])
	}
	if len(line) == lineBytes || strings.ContainsAny(string(line), "\r\x00") {
		say("a jump was refused: its first line is no key")
		return
	}
	connection.SetDeadline(time.Time{})
	if err := os.WriteFile(keys, append(line, '\n'), 0o600); err != nil {
		say("a jump could not be served: %v", err)
		return
	}
	file, err := connection.File()
	if err != nil {
		say("a jump could not be served: %v", err)
		os.Remove(keys)
		return
	}
	s.came <- arrival{file, keys}
}
