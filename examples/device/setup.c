/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the complete server, for the programs of steps 7 to 9. */
#include "device.h"

#include <stdio.h>

static void print_log(void *ctx, enum mk_log_level level, mk_str text)
{
    (void)ctx, (void)level;
    fprintf(stderr, "device: %.*s\n", MK_STR_ARG(text));
}

struct mk_server *device_new(int argc, char **argv, unsigned *port)
{
    const struct mk_server_options options = {.size = sizeof options, .on_log = print_log};
    if (argc != 4) {
        fprintf(stderr,
                "usage: %s ADDRESS CERTIFICATE KEY\n"
                "       %s '*:8443 tls' cert.pem key.pem\n",
                argv[0], argv[0]);
        return NULL;
    }
    struct mk_server *s = mk_server_new(&options);
    if (!mk_server_set(s, "SERVER", "ErrorFormat", "json") && !certificate_add(s, argv[2], argv[3]) &&
        !auth_add(s) && !settings_add(s) && !firmware_add(s) && !log_add(s) && !console_add(s) &&
        !mk_server_add_files(s, ui, ui_n, sizeof ui[0]) && !mk_server_listen(s, argv[1], port))
        return s;
    fprintf(stderr, "device: %s\n", mk_server_error(s));
    mk_server_free(s);
    return NULL;
}
