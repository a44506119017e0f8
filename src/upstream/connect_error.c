/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/connect_error.h"

#include <errno.h>
#include <string.h>

const char *mk_connect_error_text(int error)
{
    switch (error) {
    case -EHOSTUNREACH:
        return "no server is up";
    case -EBUSY:
        return "too many requests wait for a connection, or this one waited too long";
    case -ETIMEDOUT:
        return "the server did not accept the connection in time";
    case -EPROTO:
        return "the TLS handshake with the server failed";
    case -EMFILE:
    case -ENFILE:
        return "no descriptor is left for a connection to the server";
    case -ENOBUFS:
    case -ENOMEM:
        return "no memory is left for a connection to the server";
    case -ECONNREFUSED:
        return "the server refused the connection (Connection refused)";
    case -ENOENT:
        return "the socket does not exist (No such file or directory)";
    case -EPERM:
        return "connections to the server's address are not allowed (Operation not permitted)";
    case -EACCES:
        return "the workers' user may not connect to the socket (Permission denied)";
    case -ENETUNREACH:
        return "there is no route to the server (Network is unreachable)";
    case -EXFULL:
        return "the queue of the server's socket is full";
    case -ECONNRESET:
        return "the server closed the connection (Connection reset by peer)";
    case -EADDRNOTAVAIL:
        return "no local port is left for a connection to the server (Cannot assign requested address)";
    default:
        return strerror(-error);
    }
}
