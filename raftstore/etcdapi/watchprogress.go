package etcdapi

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// Progress: how far watches have come when nothing concerns them. A client asks for it on a stream, and is
// told of the stream as a whole; or it asks when it creates a watch, and is told of that now and then.

// requestProgress promises an answer when all watches of the stream have come as far as the store is now.
func (ws *watchStream) requestProgress() {
	ws.mu.Lock()
	ws.progress = ws.member.LocalRevision()
	ws.mu.Unlock()
	ws.member.RequestProgress()
	ws.answerProgress()
}

// answerProgress keeps the promise of requestProgress, if it can be kept.
func (ws *watchStream) answerProgress() {
	if revision := ws.progressMade(); revision > 0 {
		ws.send(&pb.WatchResponse{Header: ws.header.at(revision), WatchId: noWatch})
	}
}

// progressMade returns how far all watches have come, and forgets the promise; 0 if there is none or
// one of them is behind, or begins in the future. Without watches there is nothing to say, as in etcd.
func (ws *watchStream) progressMade() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.progress == 0 || len(ws.watches) == 0 {
		return 0
	}
	least := int64(0)
	for _, w := range ws.watches {
		if w.seen < ws.progress {
			return 0
		}
		if least == 0 || w.seen < least {
			least = w.seen
		}
	}
	ws.progress = 0
	return least
}

// periodicProgress tells the watches that want it, and had no event since the last time, how far they are.
func (ws *watchStream) periodicProgress() {
	for _, w := range ws.idleWatches() {
		ws.send(&pb.WatchResponse{Header: ws.header.at(w.seenNow()), WatchId: w.id})
	}
}

func (ws *watchStream) idleWatches() (list []*watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.watches {
		if w.req.ProgressNotify && w.idle && w.seen > 0 {
			list = append(list, w)
		}
		w.idle = true
	}
	return list
}
