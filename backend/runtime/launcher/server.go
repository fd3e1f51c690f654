package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	serverStart  = 10 * time.Second
	firstPause   = time.Second
	longestPause = time.Minute
	logBytes     = 256 << 10 // of the server's own words, twice: /pai/state is memory
)

// server is the bundle's sshd on the task's port. A server that ends is started again, less and less often.
type server struct {
	port  int // 0: the task has none
	pid   int // 0: it does not run
	begun time.Time
	next  time.Time // not to be started before
	pause time.Duration
	pipe  *os.File
	ready chan struct{}
}

// prepare writes what the server needs besides the plan's files.
func (s *server) prepare(port int) error {
	key, err := os.ReadFile(hostKeyFile)
	if err != nil {
		return err
	}
	// sshd refuses a key that others may read, and everybody may read the plan.
	if err := replace(privateHostKey, key, 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(emptyDirectory, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	if err := syscall.Mkfifo(serverPipe, 0o600); err != nil && !os.IsExist(err) {
		return err
	}
	// For reading and writing: so it never ends, whoever writes to it comes and goes.
	if s.pipe, err = os.OpenFile(serverPipe, os.O_RDWR, 0); err != nil {
		return err
	}
	notices, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: serverNotices, Net: "unixgram"})
	if err != nil {
		return err
	}
	s.port, s.ready = port, make(chan struct{}, 1)
	go s.awaitReady(notices)
	go keepWords(s.pipe)
	return nil
}

// tend starts the server when it does not run and its time has come.
func (s *server) tend(now time.Time) {
	if s.port == 0 || s.pid != 0 || now.Before(s.next) {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		s.failed(now, err)
		return
	}
	defer null.Close()
	arguments := []string{sshd, "-D", "-f", sshdConfig, "-p", strconv.Itoa(s.port), "-h", privateHostKey, "-E", serverPipe}
	if exists(hostCertificate) {
		arguments = append(arguments, "-c", hostCertificate)
	}
	// Nothing of the image reaches it: neither its libraries nor its configuration of OpenSSL.
	world := []string{"PATH=" + usualPath, "OPENSSL_CONF=" + os.DevNull, "NOTIFY_SOCKET=" + serverNotices}
	pid, err := syscall.ForkExec(sshd, arguments, &syscall.ProcAttr{
		Dir:   "/",
		Env:   world,
		Files: []uintptr{null.Fd(), null.Fd(), s.pipe.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		s.failed(now, err)
		return
	}
	s.pid, s.begun = pid, now
}

func (s *server) failed(now time.Time, err error) {
	say("the SSH server could not be started: %v", err)
	s.begun = now
	s.ended(now)
}

// ended notes that it is no more.
func (s *server) ended(now time.Time) {
	if now.Sub(s.begun) > longestPause {
		s.pause = 0
	}
	s.pause = min(max(2*s.pause, firstPause), longestPause)
	s.pid, s.next = 0, now.Add(s.pause)
}

// listens tells whether it has said that it listens: somebody else may be on its port, so trying to connect tells less.
func (s *server) listens() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// awaitReady takes what the server says to a service manager. Source: sd_notify(3); Debian's sshd does it.
func (s *server) awaitReady(notices *net.UnixConn) {
	buffer := make([]byte, 4096)
	for {
		count, err := notices.Read(buffer)
		if err != nil {
			say("whether the SSH server listens is not known: %v", err)
			return
		}
		if bytes.Contains(buffer[:count], []byte("READY=1")) {
			select {
			case s.ready <- struct{}{}:
			default: // of a server that came back; nobody waits for that
			}
		}
	}
}

// visited tells whether somebody is logged in.
func (s *server) visited() bool {
	return s.pid != 0 && len(family()[s.pid]) > 0
}

// keepWords keeps the last of what the server says.
func keepWords(pipe *os.File) {
	lines := bufio.NewReader(pipe)
	var file *os.File
	written := 0
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			say("the SSH server's words are kept no longer: %v", err)
			return
		}
		if file == nil || written > logBytes {
			file, err = nextLog(file)
			if err != nil {
				say("the SSH server's words are kept no longer: %v", err)
				return
			}
			written = 0
		}
		count, err := file.WriteString(line)
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			say("the SSH server's words are kept no longer: %v", err)
			return
		}
		written += count
	}
}

// nextLog begins a new log; of older ones it leaves the last.
func nextLog(full *os.File) (*os.File, error) {
	if full != nil {
		if err := errors.Join(full.Close(), os.Rename(serverLog, serverLog+".1")); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(serverLog, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// writeAccount writes the line of passwd that the bundle's programs take for the task's user: accounts.c.
func writeAccount(w *world) error {
	uid := os.Getuid()
	home := w.values["HOME"]
	if home == "" {
		home = "/"
	}
	known, err := os.ReadFile("/etc/passwd")
	if err != nil && !os.IsNotExist(err) {
		say("%v", err)
	}
	fields := []string{nameOf(uid, string(known)), "*", strconv.Itoa(uid), strconv.Itoa(os.Getgid()), "", home, sessionProgram}
	for _, field := range fields {
		if strings.ContainsAny(field, ":\n") {
			return fmt.Errorf("HOME %q cannot be a user's home: a colon or a line break is in it", home)
		}
	}
	return replace(accountFile, []byte(strings.Join(fields, ":")+"\n"), 0o644)
}

// nameOf is a user's name by the image's passwd, else one of ours.
func nameOf(uid int, passwd string) string {
	for _, line := range strings.Split(passwd, "\n") {
		fields := strings.Split(line, ":")
		if len(fields) == 7 && fields[2] == strconv.Itoa(uid) && fields[0] != "" {
			return fields[0]
		}
	}
	if uid == 0 {
		return "root"
	}
	return "task"
}
