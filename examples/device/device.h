/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the device manager. Each NAME_add() function adds one part to a server that has not started yet.
 * It returns 0 on success; otherwise, mk_server_error() describes the error. */
#ifndef DEVICE_H
#define DEVICE_H

#include <monkey/server.h>

enum { THREADS = 4 }; /* the maximum number of workers */

/* auth.c: returns true if the request carries the token of the device. Otherwise the response describes the
 * error: return MK_ERROR. */
int auth_add(struct mk_server *server);
bool auth_check(struct mk_request *request, struct mk_response *response);

/* settings.c: GET and PUT /api/settings. */
int settings_add(struct mk_server *server);

/* firmware.c: PUT /api/firmware receives an image; GET reports the progress. */
int firmware_add(struct mk_server *server);

/* log.c: GET /api/log streams the log. Any thread may call log_line(). */
int log_add(struct mk_server *server);
void log_line(const char *fmt, ...) MK_API_PRINTF(1, 2);

/* sensor.c: sensor_measure() writes the temperature to the log; sensor_start() begins a thread that does so each
 * second. */
void sensor_measure(void);
int sensor_start(void);
void sensor_stop(void);

/* console.c: a WebSocket that runs commands. console_stop() waits for the command in progress. */
int console_add(struct mk_server *server);
void console_stop(void);

/* ui.c, which `monkey pack` generates from the folder ui: the files of the user interface. */
extern const struct mk_memory_file ui[];
extern const size_t ui_n;

/* certificate.c: adds a certificate and its key, which it reads from two PEM files. */
int certificate_add(struct mk_server *server, const char *certificate_file, const char *key_file);

/* setup.c: creates the complete server. Arguments of the program: ADDRESS CERTIFICATE KEY. On error, prints a
 * message and returns NULL. */
struct mk_server *device_new(int argc, char **argv, unsigned *port);

#endif
