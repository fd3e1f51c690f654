package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process is one that lives; its start tells it from a later one with the same number.
type process struct {
	pid   int
	start string
}

// family is every living process by its parent. Source: proc(5), /proc/PID/stat.
func family() map[int][]process {
	children := map[int][]process{}
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, each := range names {
		pid, err := strconv.Atoi(each.Name())
		if err != nil {
			continue
		}
		if parent, found, ok := look(pid); ok {
			children[parent] = append(children[parent], found)
		}
	}
	return children
}

// descendants are the living processes below this one, but for those below and including `without`.
func descendants(without map[int]string) []process {
	children := family()
	var all []process
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, child := range children[next[0]] {
			if _, left := without[child.pid]; !left {
				all = append(all, child)
				next = append(next, child.pid)
			}
		}
	}
	return all
}

// groupBelow are the descendants that are in a process group.
func groupBelow(group int) map[process]bool {
	found := map[process]bool{}
	for _, each := range descendants(nil) {
		if of, err := syscall.Getpgid(each.pid); err == nil && of == group {
			found[each] = true
		}
	}
	return found
}

// look reads a process; not ok when it is gone, or dead and not yet reaped.
func look(pid int) (parent int, found process, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, process{}, false
	}
	// The second field is a name in parentheses, which may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return 0, process{}, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, process{pid, fields[19]}, err == nil
}

// ofSession tells whether a process comes from an SSH session: these belong to who logged in, not to the command.
func ofSession(pid int) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return bytes.HasPrefix(environ, []byte("SSH_CONNECTION=")) || bytes.Contains(environ, []byte("\x00SSH_CONNECTION="))
}
