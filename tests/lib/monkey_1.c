/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the library of Monkey 1.7 and 1.8: it exports the same function names, and counts the calls. */
int monkey_1_calls;

#define F(name)                                                                                              \
    int name(void);                                                                                          \
    int name(void)                                                                                           \
    {                                                                                                        \
        return ++monkey_1_calls;                                                                             \
    }

// clang-format off
F(mk_create) F(mk_destroy) F(mk_start) F(mk_stop) F(mk_main) F(mk_config_set) F(mk_config_set_property)
F(mk_vhost_create) F(mk_vhost_set) F(mk_vhost_set_property) F(mk_vhost_lookup) F(mk_vhost_handler)
F(mk_http_status) F(mk_http_header) F(mk_http_send) F(mk_http_flush) F(mk_http_done) F(mk_http_error)
F(mk_http_parser) F(mk_http_parser_init) F(mk_http_parser_chunked_decode) F(mk_http_parser_content_length)
F(mk_http_request_init) F(mk_http_request_prepare) F(mk_http_request_end) F(mk_http_session_init)
F(mk_http_session_remove) F(mk_http_handler_read) F(mk_http_init) F(mk_http_method_get) F(mk_http_index_file)
F(mk_worker_callback) F(mk_worker_spawn) F(mk_worker_rename) F(mk_mq_create) F(mk_mq_send) F(mk_fifo_create)
F(mk_fifo_destroy) F(mk_fifo_worker_setup) F(mk_fifo_worker_read) F(mk_fifo_queue_create) F(mk_fifo_send)
F(mk_server_setup) F(mk_server_create) F(mk_server_init) F(mk_server_exit) F(mk_server_loop) F(mk_server_lib_notify_event)
F(mk_server_launch_workers) F(mk_server_worker_loop) F(mk_server_listen_init) F(mk_server_listen_exit)
F(mk_server_fork_mode) F(mk_server_balanced_mode) F(mk_server_info) F(mk_server_lib_mode)
F(mk_sched_init) F(mk_sched_exit) F(mk_sched_launch_thread) F(mk_sched_get_thread_conf) F(mk_sched_worker_info)
F(mk_sched_add_connection) F(mk_sched_remove_client) F(mk_sched_get_connection) F(mk_sched_drop_connection)
F(mk_sched_check_timeouts) F(mk_sched_event_read) F(mk_sched_event_write) F(mk_sched_event_close)
F(mk_sched_threads_purge) F(mk_sched_broadcast_signal) F(mk_sched_send_signal) F(mk_sched_worker_cb_add)
F(mk_clock_worker_init) F(mk_clock_sequential_init) F(mk_clock_exit) F(mk_clock_set_time)
F(mk_config_init) F(mk_config_start_configure) F(mk_config_signature) F(mk_config_set_init_values)
F(mk_config_free_all) F(mk_config_listener_add) F(mk_config_listen_parse) F(mk_config_host_find)
F(mk_event_init) F(mk_event_loop_create) F(mk_event_loop_destroy) F(mk_event_add) F(mk_event_del) F(mk_event_wait)
F(mk_event_timeout_create) F(mk_event_timeout_destroy) F(mk_event_channel_create) F(mk_event_backend)
F(mk_header_prepare) F(mk_header_set_http_status) F(mk_header_get) F(mk_header_response_reset)
F(mk_string_search) F(mk_string_dup) F(mk_string_build) F(mk_string_split_line) F(mk_string_itop) F(mk_string_char_search)
F(mk_ptr_to_buf) F(mk_ptr_free) F(mk_ptr_set) F(mk_ptr_create) F(mk_buffer_cat) F(mk_file_get_info) F(mk_file_to_buffer)
F(mk_utils_worker_spawn) F(mk_utils_url_decode) F(mk_utils_gmt2utime) F(mk_utils_utime2gmt) F(mk_utils_error)
F(mk_utils_stacktrace) F(mk_utils_set_daemon) F(mk_utils_register_pid) F(mk_utils_worker_rename)
F(mk_iov_create) F(mk_iov_free) F(mk_iov_add) F(mk_iov_set_entry) F(mk_iov_send) F(mk_iov_realloc)
F(mk_rconf_open) F(mk_rconf_create) F(mk_rconf_free) F(mk_rconf_section_get) F(mk_rconf_section_get_key)
F(mk_socket_create) F(mk_socket_connect) F(mk_socket_server) F(mk_socket_accept) F(mk_socket_send_file)
F(mk_socket_set_tcp_nodelay) F(mk_socket_set_nonblocking) F(mk_socket_bind) F(mk_socket_open)
F(mk_stream_set) F(mk_stream_new) F(mk_stream_in_raw) F(mk_stream_release) F(mk_channel_write) F(mk_channel_flush)
F(mk_channel_new) F(mk_channel_release) F(mk_channel_clean) F(mk_plugin_load) F(mk_plugin_load_all) F(mk_plugin_load_static)
F(mk_plugin_core_process) F(mk_plugin_core_thread) F(mk_plugin_exit_all) F(mk_plugin_exit_worker) F(mk_plugin_register)
F(mk_plugin_stage_run_10) F(mk_plugin_stage_run_20) F(mk_plugin_stage_run_30) F(mk_plugin_stage_run_40)
F(mk_plugin_stage_run_50) F(mk_plugin_api_init) F(mk_plugin_preworker_calls) F(mk_mimetype_init) F(mk_mimetype_find)
F(mk_mimetype_add) F(mk_mimetype_read_config) F(mk_mimetype_free_all) F(mk_user_init) F(mk_user_set_uidgid)
F(mk_user_undo_uidgid) F(mk_cache_worker_init) F(mk_cache_worker_exit) F(mk_cache_get) F(mk_kernel_init)
F(mk_kernel_version) F(mk_kernel_features) F(mk_vhost_init) F(mk_vhost_read) F(mk_vhost_get) F(mk_vhost_open)
F(mk_vhost_close) F(mk_vhost_fdt_worker_init) F(mk_vhost_map_handlers) F(mk_net_transport_buffer) F(mk_print)
F(mk_details) F(mk_tls_init) F(mk_lib_yield) F(mk_exit_all) F(mk_signal_init) F(mk_signal_exit) F(mk_signal_context)
F(mk_thread_create) F(mk_thread_destroy) F(mk_thread_resume) F(mk_thread_yield) F(mk_http_thread_create)
