package main

import (
	"bufio"
	"context"
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
	firstPause   = time.Second
	longestPause = time.Minute
	clientsMost  = 300       // connections at once, logged in or not; who comes then waits in the kernel
	logBytes     = 256 << 10 // of the server's own words, twice: /pai/state is memory
)

// server lets clients in by the bundle's sshd, one for each connection, as inetd does: nothing of it runs while nobody
// is there. Source: sshd(8), -i.
type server struct {
	port    int // 0: the task has none
	listens bool
	next    time.Time // not to be tried before
	pause   time.Duration
	pipe    *os.File
	came    chan arrival   // connections that no sshd has yet
	serving map[int]string // by process ids of sshds: the file of the key that one accepts alone, to be removed with it
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
	s.port, s.came, s.serving = port, make(chan arrival), map[int]string{}
	go keepWords(s.pipe)
	return s.jumps()
}

// tend begins to listen when that is to be tried: the port may be somebody else's, who may leave it.
func (s *server) tend(now time.Time) {
	if s.port == 0 || s.listens || now.Before(s.next) {
		return
	}
	listener, err := listenOn(s.port)
	if err != nil {
		if s.pause == 0 {
			say("the SSH server does not listen on port %d, and tries again: %v", s.port, err)
		}
		s.pause = min(max(2*s.pause, firstPause), longestPause)
		s.next = now.Add(s.pause)
		return
	}
	s.listens = true
	go s.accept(listener)
}

// listenOn listens on all addresses. How a connection is kept alive is sshd's to say.
func listenOn(port int) (net.Listener, error) {
	how := net.ListenConfig{KeepAlive: -1}
	how.SetMultipathTCP(false)
	return how.Listen(context.Background(), "tcp", ":"+strconv.Itoa(port))
}

// accept hands over whoever comes, for ever. What cannot be accepted now (too many open files) is accepted later.
func (s *server) accept(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			say("an SSH client could not come in: %v", err)
			time.Sleep(firstPause)
			continue
		}
		file, err := connection.(*net.TCPConn).File()
		connection.Close()
		if err == nil {
			s.came <- arrival{connection: file}
		}
	}
}

// arrivals are connections to be served; none while so many are served already.
func (s *server) arrivals() <-chan arrival {
	if len(s.serving) >= clientsMost {
		return nil
	}
	return s.came
}

// serve gives a connection an sshd of its own.
func (s *server) serve(who arrival) {
	defer who.connection.Close()
	pid, err := startServer(who.connection.Fd(), s.pipe.Fd(), who.keys)
	if err != nil {
		say("an SSH client could not be served: %v", err)
		forget(who.keys)
		return
	}
	s.serving[pid] = who.keys
}

// left takes in that a process has ended, which may have been an sshd.
func (s *server) left(pid int) {
	forget(s.serving[pid])
	delete(s.serving, pid)
}

// forget removes the file of a jump's key.
func forget(keys string) {
	if keys == "" {
		return
	}
	if err := os.Remove(keys); err != nil {
		say("the key of a jump stays: %v", err)
	}
}

func startServer(socket, words uintptr, keys string) (int, error) {
	if err := syscall.SetNonblock(int(socket), false); err != nil {
		return 0, err
	}
	arguments := []string{sshd, "-i", "-f", sshdConfig, "-h", privateHostKey, "-E", serverPipe}
	if exists(hostCertificate) {
		arguments = append(arguments, "-c", hostCertificate)
	}
	if keys != "" {
		arguments = append(arguments, "-o", "AuthorizedKeysFile="+keys) // before that of the configuration: sshd(8), -o
	}
	return syscall.ForkExec(sshd, arguments, &syscall.ProcAttr{
		Dir: "/",
		// Nothing of the image reaches it: neither its libraries nor its configuration of OpenSSL.
		Env:   []string{"PATH=" + usualPath, "OPENSSL_CONF=" + os.DevNull},
		Files: []uintptr{socket, socket, words},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// visited tells whether somebody is logged in.
func (s *server) visited() bool {
	return len(s.serving) > 0
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
