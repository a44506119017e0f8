/* SPDX-License-Identifier: Apache-2.0 */
/* The certificate of the device. The server receives it as text in memory, so it can also come from a flash
 * partition, a secure element, or a key that the program generates. */
#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PEM_MAX = 16 << 10 };

/* Reads a file as a string. */
static int read_pem(const char *name, char text[PEM_MAX])
{
    FILE *file = fopen(name, "re");
    if (!file) {
        fprintf(stderr, "device: %s: %s\n", name, strerror(errno));
        return -1;
    }
    setbuf(file, NULL); /* leaves no copy of the key in a buffer of the C library */
    size_t n = fread(text, 1, PEM_MAX - 1, file);
    int err = ferror(file);
    fclose(file);
    text[n] = '\0';
    return err;
}

int certificate_add(struct mk_server *s, const char *certificate_file, const char *key_file)
{
    char certificate[PEM_MAX], key[PEM_MAX];
    int err = read_pem(certificate_file, certificate);
    if (!err)
        err = read_pem(key_file, key);
    if (!err)
        err = mk_server_add_certificate(s, certificate, key);
    explicit_bzero(key, sizeof key);
    return err;
}
