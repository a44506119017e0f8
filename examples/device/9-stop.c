/* SPDX-License-Identifier: Apache-2.0 */
/* Step 9: the complete device manager, with a clean stop on SIGINT and SIGTERM. */
#include "device.h"

#include <signal.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    unsigned port;
    int number;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL); /* before any thread starts */
    struct mk_server *s = device_new(argc, argv, &port);
    if (!s)
        return 1;
    if (mk_server_start(s, THREADS) || sensor_start()) {
        fprintf(stderr, "device: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("https://localhost:%u/\n", port);
    fflush(stdout);
    sigwait(&set, &number);
    mk_server_stop(s, 5000);
    int err = mk_server_wait(s);
    if (err)
        fprintf(stderr, "device: %s\n", mk_server_error(s));
    sensor_stop();
    console_stop();
    mk_server_free(s);
    return err != 0;
}
