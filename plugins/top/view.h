/* SPDX-License-Identifier: Apache-2.0 */
/* `monkey top`: shows what a server is doing, from its recording. */
#ifndef TOP_RECORDER_TOP_H
#define TOP_RECORDER_TOP_H

int top_view_run(int argc, char **argv);

#endif
