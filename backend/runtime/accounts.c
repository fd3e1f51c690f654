/*
 * Who the task's user is, for OpenSSH's programs in any image.
 *
 * OpenSSH looks users up by name and number, and refuses those that /etc/passwd does not have, that are locked, or
 * whose shell is not there. A task runs as whatever number its pod says. The launcher writes who that is, one line of
 * passwd in ACCOUNT; this library, which the bundle's programs are linked to before libc, tells it to them. It is small
 * on purpose: everything else is as Debian has built it.
 *
 * Built twice. With SERVER, for sshd: every name that logs in is the task's user, since the key says who it is; and what
 * the image has for sshd does not matter (a directory to lock itself in, hosts.allow, an audit log that needs rights).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <shadow.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ACCOUNT "/pai/state/account"
#define EMPTY "/pai/state/empty"
#define OPENSSH_EMPTY "/run/sshd" /* Debian's --with-privsep-path */
#define OPENSSH_USER "sshd"
#define NOBODY 65534

/* The first line of a passwd file that fits; the next call overwrites it, as passwd(5)'s functions may. */
static struct passwd *search(const char *path, const char *name, uid_t uid)
{
    FILE *file = fopen(path, "re");
    struct passwd *found = NULL;
    if (file == NULL)
        return NULL;
    while ((found = fgetpwent(file)) != NULL)
        if (name == NULL ? found->pw_uid == uid : strcmp(found->pw_name, name) == 0)
            break;
    fclose(file);
    return found;
}

struct passwd *getpwuid(uid_t uid)
{
    struct passwd *found = search(ACCOUNT, NULL, uid);
    return found != NULL ? found : search("/etc/passwd", NULL, uid);
}

#ifndef SERVER

struct passwd *getpwnam(const char *name)
{
    struct passwd *found = search(ACCOUNT, name, 0);
    return found != NULL ? found : search("/etc/passwd", name, 0);
}

#else

struct passwd *getpwnam(const char *name)
{
    /* Whom the part of the server becomes that strangers talk to. Nobody logs in as that. */
    static struct passwd without_rights = {
        .pw_name = OPENSSH_USER, .pw_passwd = "*", .pw_uid = NOBODY, .pw_gid = NOBODY,
        .pw_gecos = "", .pw_dir = EMPTY, .pw_shell = "/nonexistent",
    };
    if (strcmp(name, OPENSSH_USER) == 0)
        return &without_rights;
    return search(ACCOUNT, NULL, geteuid());
}

/* No password, no expiry: whether somebody may log in is for the keys to say. */
struct spwd *getspnam(const char *name)
{
    (void)name;
    return NULL;
}

/* The container's supplementary groups stay those of sessions, whatever groups the image's user is in. */
int initgroups(const char *name, gid_t group)
{
    (void)name;
    (void)group;
    return 0;
}

int setgroups(size_t count, const gid_t *groups)
{
    if (count == 0) /* sshd forgets them at its start; only its part without rights must be without them */
        return 0;
    return syscall(SYS_setgroups, count, groups);
}

static const char *moved(const char *path)
{
    return strcmp(path, OPENSSH_EMPTY) == 0 ? EMPTY : path;
}

int stat(const char *restrict path, struct stat *restrict about)
{
    return fstatat(AT_FDCWD, moved(path), about, 0);
}

int chroot(const char *path)
{
    return syscall(SYS_chroot, moved(path));
}

/* tcp_wrappers: hosts.allow and hosts.deny of an image were not written for this server. */
int hosts_access(void *request)
{
    (void)request;
    return 1;
}

/* Without CAP_AUDIT_WRITE a login with a terminal would fail; sshd goes on where the kernel has no audit. */
int audit_open(void)
{
    errno = EPROTONOSUPPORT;
    return -1;
}

#endif
