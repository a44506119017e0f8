/* SPDX-License-Identifier: Apache-2.0 */
/* Step 7: TLS. */
#include "device.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    unsigned port;
    struct mk_server *s = device_new(argc, argv, &port);
    if (!s || sensor_start()) {
        mk_server_free(s);
        return 1;
    }
    printf("https://localhost:%u/\n", port);
    fflush(stdout);
    int err = mk_server_run(s);
    if (err)
        fprintf(stderr, "device: %s\n", mk_server_error(s));
    mk_server_free(s);
    return err != 0;
}
