# The first process of a node: gives the node mounts of its own, then waits to be killed, and the node with it.
# bash collects what children of its children leave behind.
set -eu
home=$1 name=$2
mount --make-rshared /
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/netns /var/lib/kubelet
# Both paths are fixed in kubelet: the first for its device plugins, the second for the logs of pods.
mount --bind "$home/kubelet" /var/lib/kubelet
mount --bind "$home/log" /var/log
hostname "$name"
touch "$home/up"
sleep infinity &
wait
