package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// jobInfo is what is read of the job info file. docs/job-info.md describes it.
type jobInfo struct {
	Tasks []struct {
		Name    string           `json:"name"`
		Host    string           `json:"host"`
		Ports   map[string][]int `json:"ports"`
		SSHName string           `json:"sshName"`
	} `json:"tasks"`
}

// What holds for all peers: counterpart of pai_backend.launch.peers, which has the reasons.
var ofPeers = []string{
	fmt.Sprintf("IdentityFile %q", peerKey),
	"IdentitiesOnly yes",
	"IdentityAgent none",
	"PreferredAuthentications publickey",
	fmt.Sprintf("UserKnownHostsFile %q", knownHostsFile),
	"GlobalKnownHostsFile /dev/null",
	"StrictHostKeyChecking yes",
	"CheckHostIP no",
	"UpdateHostKeys no",
	"ConnectionAttempts 30",
	"ServerAliveInterval 30",
}

// sshConfiguration is what ssh in the task is told of the job's tasks. Text that is no job info names none of them.
func sshConfiguration(info []byte) string {
	var told jobInfo
	if err := json.Unmarshal(info, &told); err != nil {
		told = jobInfo{}
	}
	var lines, names []string
	others := "Host *"
	for _, task := range told.Tasks {
		if ports := task.Ports["ssh"]; task.Host != "" && len(ports) > 0 {
			lines = append(lines, "Host "+task.Name, "    HostName "+task.Host)
			lines = append(lines, fmt.Sprintf("    Port %d", ports[0]), "    HostKeyAlias "+task.SSHName)
			names = append(names, task.Name)
			others += " !" + task.Name
		}
	}
	if len(names) > 0 {
		lines = append(lines, "Host "+strings.Join(names, " "))
		for _, line := range ofPeers {
			lines = append(lines, "    "+line)
		}
	}
	lines = append(lines, others, "    Include ~/.ssh/config", "    Include /etc/ssh/ssh_config")
	return strings.Join(lines, "\n") + "\n"
}

// takeKey puts the key for peers where ssh takes it: everybody may read the plan, and ssh refuses such a key.
func takeKey() error {
	key, err := os.ReadFile(peerKeyFile)
	if err != nil {
		return err
	}
	return replace(peerKey, key, 0o600)
}

// client is ssh, scp or sftp of the bundle, told of the peers. It returns only what hindered it.
func client(name string, arguments []string) error {
	program := extraCommands + "/" + name
	words := []string{program, "-F", sshConfigFile}
	if name != "ssh" {
		// They would call the ssh that they were built for, by its absolute path.
		words = []string{program, "-S", peerCommands + "/ssh"}
	}
	return syscall.Exec(program, append(words, arguments...), os.Environ())
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
