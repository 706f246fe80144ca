/* Echoes connections on threads with 64 kB of machine stack each, of which the calls of a kernel need nothing. */

#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM (64 * 1024)

static void begin(void *(*run)(void *), void *with) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, ROOM) != 0)
        exit(2);
    if (pthread_create(&thread, &attributes, run, with) != 0)
        exit(3);
    pthread_detach(thread);
}

static void *echo(void *with) {
    int connection = (int)(intptr_t)with;
    char bytes[1024];
    struct pollfd readable = {.fd = connection, .events = POLLIN};
    for (;;) {
        poll(&readable, 1, -1);
        ssize_t count = read(connection, bytes, sizeof bytes);
        if (count <= 0 || write(connection, bytes, count) != count)
            break;
    }
    close(connection);
    return NULL;
}

static void *serve(void *with) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7000)};
    (void)with;
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0)
        exit(4);
    for (;;) {
        int connection = accept(listener, NULL, NULL);
        if (connection >= 0)
            begin(echo, (void *)(intptr_t)connection);
    }
}

int main(void) {
    begin(serve, NULL);
    for (;;)
        pause();
}
