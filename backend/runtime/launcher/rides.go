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

// rides lets in clients of the gateway's whose own SSH comes here. Counterpart: pai_backend.engine.rides.
func (s *server) rides() error {
	if err := os.Remove(ridesSocket); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.RemoveAll(ridesKeys); err != nil {
		return err
	}
	if err := os.Mkdir(ridesKeys, 0o700); err != nil {
		return err
	}
	listener, err := net.Listen("unix", ridesSocket)
	if err != nil {
		return err
	}
	go func() {
		for number := 0; ; number++ {
			connection, err := listener.Accept()
			if err != nil {
				say("a ride could not come in: %v", err)
				time.Sleep(firstPause)
				continue
			}
			go s.ride(connection.(*net.UnixConn), filepath.Join(ridesKeys, fmt.Sprint(number)))
		}
	}()
	return nil
}

// ride reads the line with the key, and not a byte of what follows, and hands the rest over.
func (s *server) ride(connection *net.UnixConn, keys string) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(firstLine))
	line, one := []byte{}, make([]byte, 1)
	for len(line) < lineBytes {
		if _, err := connection.Read(one); err != nil {
			say("a ride ended before its key: %v", err)
			return
		}
		if one[0] == '\n' {
			break
		}
		line = append(line, one[0])
	}
	if len(line) == lineBytes || strings.ContainsAny(string(line), "\r\x00") {
		say("a ride was refused: its first line is no key")
		return
	}
	connection.SetDeadline(time.Time{})
	if err := os.WriteFile(keys, append(line, '\n'), 0o600); err != nil {
		say("a ride could not be served: %v", err)
		return
	}
	file, err := connection.File()
	if err != nil {
		say("a ride could not be served: %v", err)
		os.Remove(keys)
		return
	}
	s.came <- arrival{file, keys}
}
