// Package traffic is what a cluster's users notice: requests over HTTP that go on and on, and for how long none of them was answered.
//
// Every request has a connection of its own, as those of many users have, and is sent when its time has come, whatever became of those
// before it. Nothing is tried again.
package traffic
