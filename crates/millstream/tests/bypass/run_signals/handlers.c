/* Echoes one connection of port 7000 while a timer interrupts it 0.05 to 0.35 ms after each interruption. The handler of SIGALRM
 * forks, and waits for its child, or leaves the call that it has interrupted by siglongjmp(3), or echoes itself and
 * begins another connection while the program does nothing but allocate. In the first case the program forks, too, as the handler may interrupt that. Says so
 * once the handler has run often enough, and in the end how many bytes were echoed.
 *
 * With "end" it serves nothing: thirty processes, of which one thread allocates and another one forks, are ended by SIGTERM. It
 * says how many have ended within two seconds.
 *
 * Usage: handlers fork|jump|echo|end */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf before_the_call;
static volatile sig_atomic_t may_jump, count;
enum { OFTEN_ENOUGH = 1000 };

static void interrupt_soon(void) {
    struct itimerval soon = {{0, 0}, {0, 50 + count * 7 % 300}};
    if (count < OFTEN_ENOUGH)
        setitimer(ITIMER_REAL, &soon, NULL);
}

static int forks(void) {
    pid_t child = fork(), ended;
    if (child == 0)
        _exit(0);
    do
        ended = waitpid(child, NULL, 0);
    while (ended < 0 && errno == EINTR);
    return child > 0 && ended == child;
}

static void fork_and_wait(int signal) {
    int saved = errno;
    count += forks();
    interrupt_soon();
    errno = saved;
    (void)signal;
}

static void jump(int signal) {
    interrupt_soon();
    if (may_jump) {
        may_jump = 0;
        count++;
        siglongjmp(before_the_call, 1);
    }
    (void)signal;
}

static int listening(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7000)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 1))
        return -1;
    return fd;
}

/* Waits for bytes by calls that take none, so that one that is left in the midst loses nothing. */
static void wait_for_bytes(int fd) {
    char byte;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    sigsetjmp(before_the_call, 1);
    may_jump = 1;
    while (poll(&one, 1, -1) != 1 || recv(fd, &byte, 1, MSG_PEEK) < 0)
        ;
    may_jump = 0;
}

static int sends(int fd, const char *from, ssize_t left) {
    while (left > 0) {
        ssize_t sent = send(fd, from, left, 0);
        if (sent < 0 && errno != EINTR)
            return 0;
        if (sent > 0) {
            from += sent;
            left -= sent;
        }
    }
    return 1;
}

static int connection;
static volatile long echoed_by_handler;
static volatile sig_atomic_t has_ended;

/* To a port where nothing listens. */
static void begin_another(void) {
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (getpeername(connection, (struct sockaddr *)&at, &len) == 0) {
        at.sin_port = htons(9);
        connect(fd, (struct sockaddr *)&at, sizeof at);
    }
    close(fd);
}

static void echo(int signal) {
    static char bytes[4096];
    int saved = errno;
    ssize_t got = recv(connection, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0 && sends(connection, bytes, got))
        echoed_by_handler += got;
    if (got == 0 || (got < 0 && errno != EAGAIN))
        has_ended = 1;
    else
        begin_another();
    /* The last signals come while the peer is about to end. */
    struct itimerval soon = {{0, 0}, {0, 50 + ++count * 7 % 300}};
    setitimer(ITIMER_REAL, &soon, NULL);
    errno = saved;
    (void)signal;
}

static int allocates(int fd) {
    static void *all[64];
    unsigned next = 0;
    int is_enough = 0;
    struct sigaction action = {.sa_handler = echo, .sa_flags = 0};
    connection = fd;
    sigaction(SIGALRM, &action, NULL);
    interrupt_soon();
    while (!has_ended) {
        next = next * 1103515245 + 12345;
        void **one = &all[next >> 16 & 63];
        free(*one);
        *one = malloc((next >> 8 & 0xffff) + 1);
        if (!is_enough && count >= OFTEN_ENOUGH) {
            is_enough = 1;
            write(1, "enough\n", 7);
        }
    }
    printf("%ld\n", echoed_by_handler);
    return 0;
}

enum { PROCESSES = 30 };

static void *fork_for_ever(void *nothing) {
    while (forks())
        ;
    return nothing;
}

static void work_for_ever(void) {
    pthread_t forker;
    struct pollfd one = {.fd = listening(), .events = POLLIN};
    static void *all[64];
    poll(&one, 1, 0);
    pthread_create(&forker, NULL, fork_for_ever, NULL);
    for (unsigned next = 1;; next = next * 1103515245 + 12345) {
        free(all[next >> 16 & 63]);
        all[next >> 16 & 63] = malloc((next >> 8 & 0xffff) + 1);
    }
}

static int ends(pid_t process) {
    int status;
    kill(process, SIGTERM);
    for (int wait = 0; wait < 2000; wait++) {
        if (waitpid(process, &status, WNOHANG) == process)
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        usleep(1000);
    }
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    return 0;
}

static int end_all(void) {
    int ended = 0;
    for (int each = 0; each < PROCESSES; each++) {
        pid_t process = fork();
        if (process == 0)
            work_for_ever();
        usleep(30000 + each * 700);
        ended += ends(process);
    }
    printf("%d\n", ended);
    return 0;
}

int main(int number, char **words) {
    static char bytes[4096];
    struct sigaction action = {.sa_flags = 0};
    long echoed = 0;
    int is_enough = 0, is_forking = number == 2 && strcmp(words[1], "fork") == 0;
    if (number == 2 && strcmp(words[1], "end") == 0)
        return end_all();
    int listener = listening(), fd = accept(listener, NULL, NULL);
    if (number != 2 || fd < 0)
        return 2;
    if (strcmp(words[1], "echo") == 0)
        return allocates(fd);
    action.sa_handler = is_forking ? fork_and_wait : jump;
    sigaction(SIGALRM, &action, NULL);
    interrupt_soon();
    for (;;) {
        wait_for_bytes(fd);
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            perror("recv");
        if (got <= 0)
            break;
        if (!sends(fd, bytes, got)) {
            perror("send");
            break;
        }
        echoed += got;
        if (is_forking && echoed / 500 % 8 == 0 && !forks())
            break;
        if (!is_enough && count >= OFTEN_ENOUGH) {
            is_enough = 1;
            puts("enough");
            fflush(stdout);
        }
    }
    printf("%ld\n", echoed);
    return 0;
}
