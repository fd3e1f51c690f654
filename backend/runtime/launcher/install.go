package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const sumsFile = "SHA256SUMS"

// install copies the bundle to where a task has it, file by file as SHA256SUMS has them, and makes the file of hosts.
// It may be repeated, and be interrupted: each file is there as a whole or not at all.
func install(from, to, state string) error {
	syscall.Umask(0) // whoever the task's user is must be able to read it
	sums, err := os.ReadFile(filepath.Join(from, sumsFile))
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || !filepath.IsLocal(name) {
			return fmt.Errorf("%s has a line that is no sum and name of a file: %.80q", sumsFile, line)
		}
		if err := installFile(filepath.Join(from, name), filepath.Join(to, name), sum); err != nil {
			return err
		}
	}
	if err := installNames(to); err != nil {
		return err
	}
	if err := replaceBytes(filepath.Join(to, sumsFile), bytes.NewReader(sums), 0o644, ""); err != nil {
		return err
	}
	return replaceBytes(filepath.Join(state, "hosts"), bytes.NewReader(nil), 0o666, "")
}

// installNames gives the launcher its other names that a task needs: see main.go.
func installNames(to string) error {
	peers := filepath.Join(to, "peers")
	if err := os.MkdirAll(peers, 0o755); err != nil {
		return err
	}
	links := map[string]string{}
	for _, name := range []string{"session", "terminal"} {
		links[filepath.Join(to, "bin", name)] = "launch"
	}
	for _, name := range []string{"ssh", "scp", "sftp"} {
		links[filepath.Join(peers, name)] = "../bin/launch"
	}
	for link, target := range links {
		if err := os.Symlink(target, link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

func installFile(from, to, sum string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	about, err := source.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return replaceBytes(to, source, about.Mode().Perm(), sum)
}

// replaceBytes writes a file under another name and renames it. With a sum, its content must be as that says.
func replaceBytes(path string, content io.Reader, mode os.FileMode, sum string) error {
	draft := path + ".draft"
	file, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, digest), content)
	err = errors.Join(err, file.Close())
	if err == nil && sum != "" && hex.EncodeToString(digest.Sum(nil)) != sum {
		err = fmt.Errorf("%s of the runtime image is damaged: its SHA-256 is not the one in %s", path, sumsFile)
	}
	if err != nil {
		os.Remove(draft)
		return err
	}
	return os.Rename(draft, path)
}
