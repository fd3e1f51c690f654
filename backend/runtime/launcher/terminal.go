package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// Frames of terminals, and what is refused: docs/runtime.md. Counterpart of pai_backend.engine.local.terminals.
const (
	requestFrame, inputFrame, sizeFrame                        = 'H', 'I', 'S' // from the client
	replayFrame, outputFrame, exitFrame, listFrame, errorFrame = 'R', 'O', 'X', 'L', 'E'
	headBytes                                                  = 5
	requestBytes                                               = 4096
	inputBytes                                                 = 1 << 16 // the longest frame of a client that is attached
	sessionsMost                                               = 32      // of one user in one task
	holderWait                                                 = 5 * time.Second
	foldersLock                                                = ".lock"
)

var (
	terminalName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$`)
	terminalOwner = regexp.MustCompile(`^[0-9a-f]{8,64}$`)
)

// refused is a request that is not carried out: a stable word for programs, and a sentence.
type refused struct{ word, message string }

func (r refused) Error() string { return r.message }

// request is what a client asks for.
type request struct {
	content             []byte
	action, owner, name string
	mayStart            bool
	term                string
	rows, columns       uint16
}

// requestOf reads a request, or refuses what is none.
func requestOf(content []byte) (*request, error) {
	var told struct {
		Do    string   `json:"do"`
		Owner string   `json:"owner"`
		Name  string   `json:"name"`
		Start *bool    `json:"start"`
		Term  *string  `json:"term"`
		Rows  *float64 `json:"rows"`
		Cols  *float64 `json:"cols"`
	}
	rows, columns := 24.0, 80.0
	told.Rows, told.Cols = &rows, &columns
	if err := json.Unmarshal(content, &told); err != nil {
		return nil, refused{"invalid", "The request cannot be read: " + err.Error()}
	}
	known := slices.Contains([]string{"attach", "list", "end"}, told.Do) && terminalOwner.MatchString(told.Owner)
	if !known || told.Do != "list" && !terminalName.MatchString(told.Name) || told.Rows == nil || told.Cols == nil {
		return nil, refused{"invalid", "The request does not name a terminal and its size."}
	}
	made := &request{content: content, action: told.Do, owner: told.Owner, name: told.Name, term: "xterm-256color"}
	made.mayStart = told.Start == nil || *told.Start
	made.rows, made.columns = bounded(*told.Rows), bounded(*told.Cols)
	if told.Term != nil {
		made.term = *told.Term
	}
	for _, each := range []byte(made.term) {
		if each == 0 {
			return nil, refused{"invalid", "The type of the terminal contains a zero byte."}
		}
	}
	return made, nil
}

func bounded(number float64) uint16 {
	return uint16(max(1, min(number, 0xFFFF)))
}

func frame(kind byte, content []byte) []byte {
	made := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content)))
	return append(made, content...)
}

func jsonFrame(kind byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // only what is made here is written
	}
	return frame(kind, text)
}

func refusalFrame(err error) []byte {
	word := "failed"
	var known refused
	if errors.As(err, &known) {
		word = known.word
	}
	return jsonFrame(errorFrame, map[string]string{"error": word, "message": err.Error()})
}

// readFrame reads one frame; not a byte more is read.
func readFrame(from io.Reader, most uint32) (byte, []byte, error) {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > most {
		return 0, nil, fmt.Errorf("a frame of %d bytes", length)
	}
	content := make([]byte, length)
	_, err := io.ReadFull(from, content)
	return head[0], content, err
}

// terminal carries out the request on standard input: finds or starts the holder of a session, to which it passes the
// client on. The exit status is 0, or 1 when the client was told why not.
func terminal(root string, program []string) int {
	if err := serveTerminal(root, program); err != nil {
		os.Stdout.Write(refusalFrame(err)) // once the client was passed on, there is nobody to tell
		return 1
	}
	return 0
}

func serveTerminal(root string, program []string) error {
	kind, content, err := readFrame(os.Stdin, requestBytes)
	if err != nil || kind != requestFrame {
		return refused{"invalid", "The first frame is not a request."}
	}
	asked, err := requestOf(content)
	if err != nil {
		return err
	}
	home, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, folder := range []string{root, asked.owner} {
		if err := enterFolder(folder); err != nil {
			return err
		}
	}
	if asked.action == "list" {
		_, err := os.Stdout.Write(jsonFrame(listFrame, listed(asked)))
		return err
	}
	holder, err := findHolder(asked, program, home)
	if err != nil {
		return err
	}
	defer holder.Close()
	var passed []byte
	if asked.action == "attach" {
		passed = syscall.UnixRights(0, 1)
	}
	if _, _, err := holder.WriteMsgUnix(asked.content, passed, nil); err != nil {
		return err
	}
	if passed != nil { // the client sees an end when the holder closes them
		os.Stdin.Close()
		os.Stdout.Close()
	}
	holder.Read(make([]byte, 1)) // the holder says nothing: it closes
	if asked.action == "end" {
		_, err = os.Stdout.Write(jsonFrame(listFrame, []any{}))
	}
	return err
}

// enterFolder goes to a folder that no other account can read: names of sockets in it are short then.
func enterFolder(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	var about syscall.Stat_t
	if err := syscall.Lstat(folder, &about); err != nil {
		return err
	}
	if about.Mode&syscall.S_IFMT != syscall.S_IFDIR || int(about.Uid) != os.Geteuid() || about.Mode&0o077 != 0 {
		return refused{"unsafe", fmt.Sprintf("The folder %s of terminals belongs to another account or is open to others.", folder)}
	}
	return os.Chdir(folder)
}

// lockFolder holds the lock of a folder of sessions until the file is closed.
func lockFolder(folder int) (*os.File, error) {
	number, err := syscall.Openat(folder, foldersLock, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	lock := os.NewFile(uintptr(number), foldersLock)
	for {
		err := syscall.Flock(number, syscall.LOCK_EX)
		if err == nil {
			return lock, nil
		}
		if err != syscall.EINTR {
			lock.Close()
			return nil, err
		}
	}
}

// connected is a connection to the holder of a session; nil when there is none.
func connected(name string) (*net.UnixConn, error) {
	holder, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nil
	}
	return holder, err
}

func sessions() []string {
	var found []string
	entries, _ := os.ReadDir(".") // sorted; one that cannot be read has none
	for _, each := range entries {
		if terminalName.MatchString(each.Name()) && each.Type() == os.ModeSocket {
			found = append(found, each.Name())
		}
	}
	return found
}

// listed is what the living sessions say of themselves. A start removes the socket of a dead one of its name.
func listed(asked *request) []json.RawMessage {
	found := []json.RawMessage{}
	for _, name := range sessions() {
		holder, err := connected(name)
		if err != nil || holder == nil {
			continue
		}
		holder.SetDeadline(time.Now().Add(holderWait))
		holder.Write(asked.content)
		if told, err := io.ReadAll(io.LimitReader(holder, requestBytes)); err == nil && json.Valid(told) {
			found = append(found, told)
		}
		holder.Close()
	}
	return found
}

// findHolder is a connection to the session's holder, which is started where there is none.
func findHolder(asked *request, program []string, home string) (*net.UnixConn, error) {
	folder, err := os.Open(".")
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	lock, err := lockFolder(int(folder.Fd()))
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if found, err := connected(asked.name); found != nil || err != nil {
		return found, err
	}
	if err := os.Remove(asked.name); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if !asked.mayStart || asked.action == "end" {
		return nil, refused{"gone", fmt.Sprintf("There is no terminal %s in this task.", asked.name)}
	}
	if len(sessions()) >= sessionsMost {
		return nil, refused{"full", fmt.Sprintf("There are %d terminals in this task. End one of them.", sessionsMost)}
	}
	listening, err := net.ListenUnix("unix", &net.UnixAddr{Name: asked.name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listening.SetUnlinkOnClose(false)
	defer listening.Close()
	if err := startHolder(listening, folder, asked.name, program, home); err != nil {
		os.Remove(asked.name)
		return nil, err
	}
	return connected(asked.name)
}

func startHolder(listening *net.UnixListener, folder *os.File, name string, program []string, home string) error {
	socket, err := listening.File()
	if err != nil {
		return err
	}
	defer socket.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	started, err := os.StartProcess(self, append([]string{holderCalled, name}, program...), &os.ProcAttr{
		Dir:   home,
		Env:   os.Environ(),
		Files: []*os.File{null, null, null, socket, folder},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	return started.Release()
}
