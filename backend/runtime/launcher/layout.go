package main

// Where things are in a pod. Counterpart of pai_backend.engine.kubernetes.pods.layout.
const (
	runtimeDirectory = "/pai/runtime"
	extraCommands    = runtimeDirectory + "/commands" // last on PATH: what an image may lack
	peerCommands     = runtimeDirectory + "/peers"    // first on PATH of a task with peers: ssh, scp and sftp that know them
	sshd             = runtimeDirectory + "/bin/sshd"
	sshdConfig       = runtimeDirectory + "/sshd_config"
	sessionProgram   = runtimeDirectory + "/bin/session"
	terminalProgram  = runtimeDirectory + "/bin/terminal"

	planDirectory = "/pai/plan"
	commandFile   = planDirectory + "/command.gz"
	environFile   = planDirectory + "/environ.gz"
	optionsFile   = planDirectory + "/options"
	hostKeyFile   = planDirectory + "/host_key"
	// Of these three an older backend has none.
	hostCertificate = planDirectory + "/host_certificate"
	peerKeyFile     = planDirectory + "/peer_key"
	knownHostsFile  = planDirectory + "/known_hosts"

	jobDirectory   = "/pai/job"
	jobVersion     = jobDirectory + "/..data" // the kubelet's link: another one when anything has changed
	jobInfoSource  = jobDirectory + "/job-info.json.gz"
	peersFile      = jobDirectory + "/hosts"
	completeMark   = "# complete"
	hostsFile      = "/etc/hosts"
	jobInfoFile    = stateDirectory + "/job-info.json"
	stateDirectory = "/pai/state"
	begunFile      = stateDirectory + "/begun"
	exitFile       = stateDirectory + "/exit.json"
	commandDraft   = stateDirectory + "/command" // its text for bash; without a name as soon as it is open
	worldFile      = stateDirectory + "/environ" // variables of the command, for SSH sessions
	accountFile    = stateDirectory + "/account" // a line of passwd, for the bundle's programs: accounts.c
	privateHostKey = stateDirectory + "/host_key"
	peerKey        = stateDirectory + "/peer_key"
	sshConfigFile  = stateDirectory + "/ssh_config" // what ssh in the task is told of its peers; follows the job info
	emptyDirectory = stateDirectory + "/empty"      // where the server's part without rights is locked in: accounts.c
	jumpSocket     = stateDirectory + "/rides"      // pai_backend.engine.jumps.JUMP_SOCKET
	jumpKeys       = stateDirectory + "/rides.keys"
	serverPipe     = stateDirectory + "/sshd.pipe"
	serverLog      = stateDirectory + "/sshd.log"
	terminals      = stateDirectory + "/terminals" // a folder for each user, with a socket for each session

	workDirectory  = "/pai/work"
	terminationLog = "/dev/termination-log"
	mark           = "PAI_TASK_UID"
)
