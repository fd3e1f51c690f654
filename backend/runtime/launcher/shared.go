package main

import (
	"fmt"
	"os"
	"strings"
)

// shared is what all tasks of an attempt have in common: job info and hosts, in clear and kept current.
//
// It looks rather than being told: inotify instances are few on a node, and all containers of a user share them.
type shared struct {
	keepsHosts bool
	hasPeers   bool
	complete   bool   // whether the hosts of all placed tasks are known
	seen       string // version that was unpacked last
	complaint  string // what was last said of not being able to
}

// keepCurrent refreshes, and says once what hinders it. It is tried again each time.
func (s *shared) keepCurrent() {
	complaint := ""
	if err := s.refresh(); err != nil {
		complaint = err.Error()
	}
	if complaint != "" && complaint != s.complaint {
		say("what the tasks of the job share could not be refreshed: %s", complaint)
	}
	s.complaint = complaint
}

// refresh unpacks what the kubelet has replaced since the last time.
func (s *shared) refresh() error {
	version, err := os.Readlink(jobVersion)
	if err != nil {
		return err
	}
	if version == s.seen {
		return nil
	}
	info, err := unpacked(jobInfoSource)
	if err != nil {
		return err
	}
	if err := replace(jobInfoFile, info, 0o644); err != nil {
		return err
	}
	if s.hasPeers {
		if err := replace(sshConfigFile, []byte(sshConfiguration(info)), 0o644); err != nil {
			return err
		}
	}
	if s.keepsHosts {
		if err := s.writeHosts(); err != nil {
			return err
		}
	}
	s.seen = version
	return nil
}

func (s *shared) writeHosts() error {
	peers, err := os.ReadFile(peersFile)
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	content, complete := hosts(string(peers), os.Getenv("PAI_POD_IP"), name)
	if err := overwrite(hostsFile, []byte(content)); err != nil {
		return err
	}
	s.complete = complete
	return nil
}

// hosts is the content of /etc/hosts, and whether every placed task is in it.
func hosts(peers, address, name string) (string, bool) {
	lines := []string{
		"127.0.0.1\tlocalhost",
		"::1\tlocalhost ip6-localhost ip6-loopback",
		"fe00::\tip6-localnet",
		"ff02::1\tip6-allnodes",
		"ff02::2\tip6-allrouters",
	}
	if address != "" {
		lines = append(lines, fmt.Sprintf("%s\t%s", address, name))
	}
	complete := false
	for _, line := range strings.Split(peers, "\n") {
		switch strings.TrimSpace(line) {
		case "":
		case completeMark:
			complete = true
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n", complete
}
