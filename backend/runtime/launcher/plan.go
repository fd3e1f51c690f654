package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// entry is a variable, or an option of the launcher.
type entry struct{ name, value string }

// port is one that the command may listen on.
type port struct {
	number int
	label  string
}

// plan is what the task's Secret says.
type plan struct {
	command     string
	environ     []entry
	keep        bool
	directories []string
	sshPort     int  // 0: none
	hasPeers    bool // whether it can log in to the tasks of its job
	ports       []port
	keepsHosts  bool
	hostsWait   time.Duration
}

func readPlan() (*plan, error) {
	command, err := unpacked(commandFile)
	if err != nil {
		return nil, err
	}
	environ, err := unpacked(environFile)
	if err != nil {
		return nil, err
	}
	options, err := os.ReadFile(optionsFile)
	if err != nil {
		return nil, err
	}
	found := &plan{command: string(command), environ: entries(environ), hasPeers: exists(peerKeyFile)}
	for _, option := range entries(options) {
		if err := found.set(option); err != nil {
			return nil, fmt.Errorf("%s: option %s: %w", optionsFile, option.name, err)
		}
	}
	return found, nil
}

// set takes one option. One that it does not know is of a newer backend, and left alone.
func (p *plan) set(option entry) (err error) {
	switch option.name {
	case "keep":
		p.keep = option.value == "1"
	case "directory":
		p.directories = append(p.directories, option.value)
	case "ssh_port":
		p.sshPort, err = strconv.Atoi(option.value)
	case "port":
		number, label, _ := strings.Cut(option.value, " ")
		var found port
		found.number, err = strconv.Atoi(number)
		found.label = label
		p.ports = append(p.ports, found)
	case "hosts_wait_s":
		var seconds float64
		seconds, err = strconv.ParseFloat(option.value, 64)
		p.hostsWait, p.keepsHosts = time.Duration(seconds*float64(time.Second)), true
	}
	return err
}

// unpacked is the content of a file that is compressed with gzip.
func unpacked(path string) ([]byte, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// entries reads NAME=VALUE, each ended by a NUL byte, as in /proc/PID/environ.
func entries(data []byte) []entry {
	var found []entry
	for _, each := range strings.Split(string(data), "\x00") {
		if name, value, ok := strings.Cut(each, "="); ok && name != "" {
			found = append(found, entry{name, value})
		}
	}
	return found
}

// world is an environment: of a name that comes twice, the last counts.
type world struct {
	names  []string
	values map[string]string
}

func worldOf(all ...[]entry) *world {
	made := &world{values: map[string]string{}}
	for _, some := range all {
		for _, each := range some {
			made.set(each.name, each.value)
		}
	}
	return made
}

func (w *world) set(name, value string) {
	if _, known := w.values[name]; !known {
		w.names = append(w.names, name)
	}
	w.values[name] = value
}

// list is the environment as execve(2) takes it.
func (w *world) list() []string {
	found := make([]string, 0, len(w.names))
	for _, name := range w.names {
		found = append(found, name+"="+w.values[name])
	}
	return found
}

// ownVariables are those of this process: the image's and the pod's.
func ownVariables() []entry {
	return entries([]byte(strings.Join(os.Environ(), "\x00")))
}
