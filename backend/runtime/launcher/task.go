package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	refreshEvery = time.Second
	waitEvery    = 20 * time.Millisecond // while something is waited for that holds the command up
	leftGrace    = 2 * time.Second       // between TERM and KILL for what a command leaves behind
	giveUp       = 5 * time.Second       // after KILL: a process in uninterruptible sleep outlives any signal
	prSubreaper  = 36                    // PR_SET_CHILD_SUBREAPER of linux/prctl.h
)

// Signals that ask a task to end: TERM, and those that images name as their STOPSIGNAL instead (37 is RTMIN+3).
var askingToEnd = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGWINCH, syscall.Signal(37),
}

// task is one run of a command. All of it happens on one goroutine, which alone starts and reaps processes.
type task struct {
	plan    *plan
	world   *world
	shared  *shared
	server  *server
	signals chan os.Signal
	main    int // the command's pid, also its group and session; 0 before it runs
	status  *syscall.WaitStatus
	started time.Time
	due     time.Time // when what is shared is looked at again
	stopped bool
	asked   map[process]bool // those of the command's group, which were told to end when the task was
	kills   int              // of the out-of-memory killer, before the command ran
}

// launch runs the task from its beginning to the exit status of its container.
func launch() int {
	t := &task{signals: make(chan os.Signal, 64), shared: &shared{}, server: &server{}}
	signal.Notify(t.signals, append(askingToEnd, syscall.SIGCHLD)...)
	// As process 1 it is what orphans come to anyway; where containers share their processes it asks for them.
	syscall.RawSyscall(syscall.SYS_PRCTL, prSubreaper, 1, 0)
	if failure := t.begin(); failure != nil {
		say("%s", failure.message)
		return t.leave(*failure)
	}
	for t.status == nil {
		t.turn(refreshEvery)
	}
	survivors := t.clearUp()
	return t.leave(t.judge(survivors))
}

// begin does everything up to the start of the command. A verdict is why it was not started.
func (t *task) begin() *verdict {
	found, err := readPlan()
	if err != nil {
		return &verdict{"start-failed", "what the task is to run could not be read: " + err.Error(), "platform"}
	}
	t.plan, t.shared.keepsHosts, t.shared.hasPeers = found, found.keepsHosts, found.hasPeers
	t.world = worldOf(ownVariables(), found.environ)
	t.world.set("PATH", pathOf(t.world.values["PATH"], found.hasPeers))
	if err := t.shared.refresh(); err != nil {
		failure := unwritten(err)
		return &failure
	}
	t.awaitPeers()
	if t.stopped {
		return &verdict{"stopped", "stopped before it started", "user"}
	}
	for _, directory := range t.plan.directories {
		if err := os.MkdirAll(directory, 0o777); err != nil {
			return &verdict{"input-failed", fmt.Sprintf("the output directory %s could not be made: %v", directory, err), "user"}
		}
	}
	if err := t.serve(); err != nil {
		failure := unwritten(err)
		return &failure
	}
	if t.stopped {
		return &verdict{"stopped", "stopped before it started", "user"}
	}
	return t.execute()
}

// awaitPeers waits until every placed task is in /etc/hosts, where this is kept.
func (t *task) awaitPeers() {
	if !t.plan.keepsHosts {
		return
	}
	found := t.until(t.plan.hostsWait, func() bool {
		t.shared.keepCurrent()
		return t.shared.complete
	})
	if !found && !t.stopped {
		say("after %v some tasks have no address in /etc/hosts yet; going on without them", t.plan.hostsWait)
	}
}

// serve writes what SSH sessions need, and lets clients in.
func (t *task) serve() error {
	if err := writeAccount(t.world); err != nil {
		return err
	}
	if t.plan.hasPeers {
		if err := takeKey(); err != nil {
			return err
		}
	}
	if t.plan.sshPort == 0 {
		return nil
	}
	if err := replace(worldFile, []byte(strings.Join(t.world.list(), "\x00")), 0o600); err != nil {
		return err
	}
	if err := t.server.prepare(t.plan.sshPort); err != nil {
		return err
	}
	t.server.tend(time.Now())
	return nil
}

// execute starts the command in a session of its own.
func (t *task) execute() *verdict {
	bash, err := find("bash", t.world.values["PATH"])
	if err != nil {
		return &verdict{"start-failed", "the command could not be executed: " + err.Error(), "platform"}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return &verdict{"start-failed", "the command could not be executed: " + err.Error(), "platform"}
	}
	defer null.Close()
	text, err := commandText(t.plan.command)
	if err != nil {
		failure := unwritten(err)
		return &failure
	}
	defer text.Close()
	t.kills, t.started = oomKills(), time.Now()
	t.main, err = syscall.ForkExec(bash, []string{"bash", "-c", readAndRun}, &syscall.ProcAttr{
		Dir:   workDirectory,
		Env:   t.world.list(),
		Files: []uintptr{null.Fd(), 1, 2, text.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	t.plan.command, t.plan.environ = "", nil // done with: secrets, and of a large job half a MiB
	if err == nil {
		t.tellBegun()
		return nil
	}
	t.main, t.started = 0, time.Time{}
	causer := "platform"
	if errors.Is(err, syscall.E2BIG) {
		causer = "user"
	}
	return &verdict{"start-failed", "the command could not be executed: " + err.Error(), causer}
}

// tellBegun leaves a mark for who keeps the container: until now no command ran in it.
func (t *task) tellBegun() {
	if err := replace(begunFile, nil, 0o644); err != nil {
		say("that the command has begun could not be written: %v", err)
	}
}

// turn waits for a signal or an SSH client, at most so long, and does what they or the time ask for.
func (t *task) turn(limit time.Duration) {
	select {
	case got := <-t.signals:
		if got == syscall.SIGCHLD {
			t.reap()
		} else {
			t.stop()
		}
	case connection := <-t.server.arrivals():
		t.server.serve(connection)
	case <-time.After(limit):
	}
	t.refresh(time.Now())
}

// refresh does what is due every second, however often something else happens.
func (t *task) refresh(now time.Time) {
	if t.plan == nil || now.Before(t.due) {
		return
	}
	t.due = now.Add(refreshEvery)
	t.shared.keepCurrent()
	t.server.tend(now)
}

// until waits for a condition; false when it did not come in time, or the task was asked to end.
func (t *task) until(limit time.Duration, holds func() bool) bool {
	for deadline := time.Now().Add(limit); !t.stopped; t.turn(waitEvery) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
	return false
}

// stop passes on the first request to end. The kubelet kills when the grace is over.
func (t *task) stop() {
	if t.stopped || t.status != nil {
		return
	}
	t.stopped = true
	if t.main != 0 {
		t.asked = groupBelow(t.main)
		syscall.Kill(-t.main, syscall.SIGTERM)
	}
}

// reap takes in all that have ended, orphans as well.
func (t *task) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil || pid <= 0:
			return
		case pid == t.main:
			t.status = &status
		default:
			t.server.left(pid)
		}
	}
}

// clearUp ends what the command has left behind; it tells how much of it could not be ended.
//
// What ran in the command's group when the task was asked to end has been told, and has the kubelet's grace: bash,
// which waits for it, may end before it does.
func (t *task) clearUp() int {
	told := map[process]bool{}
	began := time.Now()
	for {
		left, patient := t.leftovers(), false
		for _, each := range left {
			patient = patient || t.asked[each]
		}
		if len(left) == 0 || !patient && time.Since(began) > leftGrace+giveUp {
			return len(left)
		}
		for _, each := range left {
			if t.asked[each] {
				continue
			}
			if time.Since(began) > leftGrace {
				syscall.Kill(each.pid, syscall.SIGKILL)
			} else if !told[each] {
				told[each] = true
				syscall.Kill(each.pid, syscall.SIGTERM)
			}
		}
		t.turn(waitEvery)
		t.reap()
	}
}

func (t *task) leftovers() []process {
	var found []process
	for _, each := range descendants(t.server.serving) {
		if !ofSession(each.pid) {
			found = append(found, each)
		}
	}
	return found
}

// leave records the end and returns the container's exit status: at once, or when a kept task is asked to end.
func (t *task) leave(found verdict) int {
	made := recordOf(found, t.status, t.started)
	made.write()
	if t.status == nil || *t.status == 0 || t.stopped || !t.plan.keep {
		return made.exitStatus()
	}
	for {
		select {
		case got := <-t.signals:
			if got != syscall.SIGCHLD {
				return made.exitStatus()
			}
			t.reap()
		case connection := <-t.server.arrivals():
			t.server.serve(connection)
		case <-time.After(refreshEvery):
		}
		t.refresh(time.Now())
	}
}

// judge says how the command ended. Nothing is claimed that was not seen.
func (t *task) judge(survivors int) verdict {
	found := t.cause(survivors)
	if survivors > 0 {
		found.message += fmt.Sprintf("; %d of its processes could not be killed", survivors)
	}
	return found
}

func (t *task) cause(survivors int) verdict {
	how := t.how()
	if t.stopped {
		return verdict{"stopped", "stopped on request; " + how, "user"}
	}
	killed := t.status.Signal() == syscall.SIGKILL || t.status.ExitStatus() == 128+int(syscall.SIGKILL)
	if killed && t.kills >= 0 && oomKills() > t.kills {
		return verdict{"out-of-memory", how + " while the kernel killed processes here for lack of memory", "user"}
	}
	if *t.status != 0 && survivors == 0 && !t.server.visited() {
		if taken := takenPort(t.plan.ports); taken != "" {
			return verdict{"port-conflict", how + "; another program listens on its " + taken, "platform"}
		}
	}
	if t.status.Signaled() {
		return verdict{"signalled", how, "user"}
	}
	return verdict{"exited", how, "user"}
}

func (t *task) how() string {
	if t.status.Signaled() {
		return fmt.Sprintf("ended by signal %d (%v)", int(t.status.Signal()), t.status.Signal())
	}
	return fmt.Sprintf("exited with status %d", t.status.ExitStatus())
}
