/* SPDX-License-Identifier: Apache-2.0 */
/* Step 5: a console over WebSocket. */
#include "device.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    unsigned port;
    struct mk_server *s = mk_server_new(NULL);
    if (mk_server_set(s, "SERVER", "ErrorFormat", "json") || auth_add(s) || settings_add(s) ||
        firmware_add(s) || log_add(s) || console_add(s) ||
        mk_server_listen(s, argc > 1 ? argv[1] : "127.0.0.1:2001", &port) || sensor_start()) {
        fprintf(stderr, "device: %s\n", mk_server_error(s));
        mk_server_free(s);
        return 1;
    }
    printf("http://127.0.0.1:%u/api/settings\n", port);
    fflush(stdout);
    int err = mk_server_run(s);
    if (err)
        fprintf(stderr, "device: %s\n", mk_server_error(s));
    mk_server_free(s);
    return err != 0;
}
