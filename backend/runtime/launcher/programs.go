package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// pathOf adds the bundle's bash, ssh and scp to a PATH, behind what the image has; before it go those that know the peers.
func pathOf(path string, hasPeers bool) string {
	if path == "" {
		path = usualPath
	}
	if hasPeers {
		path = peerCommands + ":" + path
	}
	return path + ":" + extraCommands
}

// find is the first program of that name on a PATH.
func find(name, path string) (string, error) {
	for _, folder := range filepath.SplitList(path) {
		if folder == "" || !filepath.IsAbs(folder) {
			folder = filepath.Join(workDirectory, folder)
		}
		candidate := filepath.Join(folder, name)
		if about, err := os.Stat(candidate); err == nil && about.Mode().IsRegular() && executableByUs(candidate) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%s is not on the task's PATH (%s)", name, path)
}

func executableByUs(path string) bool {
	const execute = 1 // X_OK of access(2)
	return syscall.Access(path, execute) == nil
}

// takenPort is a port of the task that somebody listens on although nothing of the task is left; empty: none is.
func takenPort(ports []port) string {
	for _, each := range ports {
		listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", each.number))
		if err == nil {
			listener.Close()
		} else if errors.Is(err, syscall.EADDRINUSE) {
			return strings.TrimSpace(fmt.Sprintf("port %d (%s)", each.number, each.label))
		}
	}
	return ""
}
