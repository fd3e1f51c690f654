package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	holderCalled = "hold-terminal"
	clientsOfOne = 16                     // of one session
	behindBytes  = 1 << 18                // a client that takes output holds the shell up when it is further behind than this
	stalled      = 5 * time.Second        // a client that has taken nothing for so long holds it up no longer
	hangup       = time.Second            // a shell that gave its terminal up leaves it open: nothing for so long is its end
	hangupKill   = 2 * time.Second        // between a hang-up that was asked for and a kill
	unused       = time.Minute            // a holder to which no client attaches ends
	lookEvery    = 250 * time.Millisecond // at clients that stand still
)

// holder owns one session: its terminal, its scrollback and its clients. Whatever changes is told to all who wait.
type holder struct {
	mutex     sync.Mutex
	changed   sync.Cond
	listening *net.UnixListener
	name      string
	program   []string
	kept      scrollback
	clients   []*attached
	terminal  *os.File
	shell     *exec.Cmd // nil before the first client
	typed     []byte
	since     time.Time
	ending    map[string]int // how the shell ended
	readAt    time.Time      // when output or the shell's end came last
	over      bool           // whether all output has been read
	told      bool           // whether a client knows the end
	enders    []*net.UnixConn
}

// holdTerminal is the process that holds a session: descriptor 3 listens for clients, 4 is the folder of its name.
func holdTerminal(name string, program []string) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // not ignored: what it starts would ignore it as well
	socket := os.NewFile(3, name)
	listening, err := net.FileListener(socket)
	socket.Close()
	if err != nil {
		return err
	}
	h := &holder{listening: listening.(*net.UnixListener), name: name, program: program, since: time.Now()}
	h.changed.L = &h.mutex
	syscall.CloseOnExec(4)
	time.AfterFunc(unused+time.Second, h.look)
	return h.run(4)
}

// run takes in who comes, until the shell has ended and a client knows, or no client has ever attached.
func (h *holder) run(folder int) error {
	for {
		arrival, err := h.listening.AcceptUnix()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			lock, err := lockFolder(folder) // no client connects meanwhile
			if err != nil {
				return err
			}
			if arrival, err = h.waiting(); err != nil || arrival == nil {
				return errors.Join(err, syscall.Unlinkat(folder, h.name))
			}
			lock.Close()
		} else if err != nil {
			return err
		}
		h.listening.SetDeadline(time.Time{})
		h.welcome(arrival)
		h.look()
	}
}

// waiting is a client that has connected and was not taken in; nil: there is none.
func (h *holder) waiting() (*net.UnixConn, error) {
	way, err := h.listening.SyscallConn()
	if err != nil {
		return nil, err
	}
	number, failure := -1, error(nil)
	if err := way.Control(func(descriptor uintptr) {
		number, _, failure = syscall.Accept4(int(descriptor), syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
	}); err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, nil
	}
	file := os.NewFile(uintptr(number), "")
	defer file.Close()
	connection, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return connection.(*net.UnixConn), nil
}

// look wakes all who wait, and ends run when nothing is left to do.
func (h *holder) look() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.tell()
}

func (h *holder) tell() {
	h.changed.Broadcast()
	finished := h.told && len(h.clients) == 0 && h.over && h.ending != nil
	if h.shell == nil && h.ending == nil {
		finished = time.Since(h.since) > unused
	}
	if finished {
		h.listening.SetDeadline(time.Unix(1, 0))
	}
}

// welcome takes a request that another process of this program brings. It sends it at once, and whole.
func (h *holder) welcome(control *net.UnixConn) {
	content, rights := make([]byte, requestBytes), make([]byte, syscall.CmsgSpace(2*4))
	control.SetDeadline(time.Now().Add(stalled))
	count, extra, _, _, err := control.ReadMsgUnix(content, rights)
	passed := passedIn(rights[:extra])
	var asked *request
	if err == nil {
		asked, err = requestOf(content[:count])
	}
	if err == nil && asked.action == "attach" && len(passed) == 2 {
		control.SetDeadline(time.Time{})
		if client, failure := attach(control, passed); failure == nil {
			h.attach(asked, client)
			return
		}
	}
	for _, each := range passed {
		syscall.Close(each)
	}
	if err == nil && asked.action == "end" {
		h.end(control)
		return
	}
	if err == nil {
		control.Write(h.about())
	}
	control.Close()
}

func passedIn(rights []byte) []int {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	var found []int
	for i := range messages {
		numbers, err := syscall.ParseUnixRights(&messages[i])
		if err == nil {
			found = append(found, numbers...)
		}
	}
	return found
}

func (h *holder) attach(asked *request, client *attached) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.clients) >= clientsOfOne {
		message := fmt.Sprintf("%d clients are attached to the terminal. Detach one of them.", clientsOfOne)
		client.sink.SetWriteDeadline(time.Now().Add(stalled))
		client.sink.Write(refusalFrame(refused{"full", message}))
		client.close()
		return
	}
	h.clients = append(h.clients, client)
	size := windowSize{rows: asked.rows, columns: asked.columns}
	if h.shell == nil && h.ending == nil {
		h.start(asked.term, size)
	} else if h.terminal != nil && !h.over {
		resize(h.terminal, size, true)
	}
	go h.hear(client)
	go h.send(client)
}

func (h *holder) start(term string, size windowSize) {
	var err error
	if h.terminal, h.shell, err = startAtTerminal(h.program, term, size); err != nil {
		h.kept.add([]byte(fmt.Sprintf("the shell cannot be started: %v\r\n", err)))
		h.ending, h.over = map[string]int{"code": failed}, true
		return
	}
	go h.read()
	go h.write()
	go h.await()
}

// await notes how the shell ends, and that its output is over when nothing has come of it for a while.
func (h *holder) await() {
	h.shell.Wait()
	status := h.shell.ProcessState.Sys().(syscall.WaitStatus)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.ending, h.readAt = map[string]int{"code": status.ExitStatus()}, time.Now()
	if status.Signaled() {
		h.ending = map[string]int{"signal": int(status.Signal())}
	}
	for h.tell(); !h.over; h.tell() {
		if time.Since(h.readAt) >= hangup && !h.heldUp() {
			h.over = true
			continue
		}
		h.mutex.Unlock()
		time.Sleep(lookEvery)
		h.mutex.Lock()
	}
	h.typed = nil
}

// heldUp tells whether a client that takes output has much of it to take.
func (h *holder) heldUp() bool {
	return slices.ContainsFunc(h.clients, func(client *attached) bool {
		return h.kept.end()-client.at > behindBytes && time.Since(client.movedAt) < stalled
	})
}

// read keeps what the shell writes.
func (h *holder) read() {
	piece := make([]byte, pieceBytes)
	for {
		count, err := h.terminal.Read(piece)
		h.mutex.Lock()
		h.kept.add(piece[:count])
		h.readAt = time.Now()
		h.over = h.over || err != nil // hung up: EIO
		h.tell()
		for h.heldUp() && !h.over {
			h.waitAWhile()
		}
		over := h.over
		h.mutex.Unlock()
		if over {
			return
		}
	}
}

// waitAWhile waits for a change, or for a client to have stood still for long enough.
func (h *holder) waitAWhile() {
	timer := time.AfterFunc(lookEvery, h.look)
	h.changed.Wait()
	timer.Stop()
}

// write types what clients have typed.
func (h *holder) write() {
	for {
		h.mutex.Lock()
		for len(h.typed) == 0 && !h.over {
			h.changed.Wait()
		}
		piece := slices.Clone(h.typed[:min(pieceBytes, len(h.typed))])
		over := h.over
		h.mutex.Unlock()
		if over {
			return
		}
		count, err := h.terminal.Write(piece)
		h.mutex.Lock()
		if err != nil { // the terminal has been hung up: no program will read this
			count = len(h.typed)
		}
		h.typed = h.typed[min(count, len(h.typed)):]
		h.tell()
		h.mutex.Unlock()
	}
}

// hear takes in what a client types, and how large its window is.
func (h *holder) hear(client *attached) {
	defer h.drop(client)
	for {
		kind, content, err := readFrame(client.source, inputBytes)
		if err != nil {
			return
		}
		h.mutex.Lock()
		switch {
		case kind == inputFrame:
			for len(h.typed) >= inputBytes && !client.gone && !h.over {
				h.changed.Wait()
			}
			if !h.over {
				h.typed = append(h.typed, content...)
			}
			h.tell()
		case kind == sizeFrame && len(content) == 4 && h.terminal != nil && !h.over:
			rows, columns := binary.BigEndian.Uint16(content), binary.BigEndian.Uint16(content[2:])
			resize(h.terminal, windowSize{rows: rows, columns: columns}, false)
		}
		h.mutex.Unlock()
	}
}

// send writes to a client what it has not had, up to the end of the shell.
func (h *holder) send(client *attached) {
	defer h.drop(client)
	for {
		next, isLast := h.next(client)
		for rest := next; len(rest) > 0; {
			count, err := client.sink.Write(rest[:min(pieceBytes, len(rest))])
			if err != nil {
				return
			}
			rest = rest[count:]
			h.mutex.Lock()
			client.movedAt = time.Now()
			h.mutex.Unlock()
		}
		if isLast {
			h.mutex.Lock()
			h.told = true
			h.mutex.Unlock()
		}
		if isLast || next == nil {
			return
		}
	}
}

// next waits for what a client has not had; nil when it has gone.
func (h *holder) next(client *attached) (content []byte, isLast bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for !client.gone {
		switch {
		case client.at < h.kept.first:
			client.at = h.kept.end()
			return frame(replayFrame, h.kept.whole()), false
		case client.at < h.kept.end():
			piece := h.kept.read(client.at)
			client.at += len(piece)
			h.changed.Broadcast() // it may have held the shell up
			return frame(outputFrame, piece), false
		case h.over && h.ending != nil:
			return jsonFrame(exitFrame, h.ending), true
		}
		h.changed.Wait()
	}
	return nil, false
}

func (h *holder) drop(client *attached) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !client.gone {
		client.gone = true
		h.clients = slices.DeleteFunc(h.clients, func(each *attached) bool { return each == client })
		client.close()
	}
	h.tell()
}

func (h *holder) about() []byte {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	told := map[string]any{"name": h.name, "clients": len(h.clients), "ended": h.ending}
	told["since"] = float64(h.since.UnixMilli()) / 1000
	text, err := json.Marshal(told)
	if err != nil {
		panic(err)
	}
	return text
}

// end hangs the terminal up. Clients are told as after any other end; who asked sees it by the closing of `asker`.
func (h *holder) end(asker *net.UnixConn) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.enders = append(h.enders, asker)
	h.told = h.told || len(h.clients) == 0
	if h.shell == nil {
		h.since = time.Time{}
	} else if h.ending == nil {
		group := -h.shell.Process.Pid
		syscall.Kill(group, syscall.SIGHUP)
		syscall.Kill(group, syscall.SIGCONT)
		time.AfterFunc(hangupKill, func() { h.shell.Process.Kill() })
	}
}
