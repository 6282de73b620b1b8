/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events: channels, and waiting until what was read is acknowledged.
 *
 * Source: device-abi B.10; inventory 1.15, 1.16.
 */
#ifndef VERBS_EVENT_H
#define VERBS_EVENT_H
#include <infiniband/verbs.h>
#include <stdint.h>

/* The part of an object that counts its acknowledged events. */
void vb_event_state_begin(pthread_mutex_t *mutex, pthread_cond_t *cond);
void vb_event_state_end(pthread_mutex_t *mutex, pthread_cond_t *cond);

/* Sleeps until @completed, which @mutex guards, has reached @reported. */
void vb_events_await(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed,
		     uint32_t reported);

/* A CQ uses @channel, or no longer; NULL does nothing. */
void vb_channel_hold(struct ibv_comp_channel *channel);
void vb_channel_release(struct ibv_comp_channel *channel);
#endif
