package etcdapi

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kontiki/raftstore"
)

// Alarm implements pb.MaintenanceServer. Members raise alarms by themselves; a client can look at them
// and, once their cause is gone, end them. In a request, member 0 is all members and NONE all kinds.
func (s *maintenanceServer) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	answer := &pb.AlarmResponse{}
	switch r.Action {
	case pb.AlarmRequest_GET:
		answer.Alarms = matching(s.alarms(), r)
	case pb.AlarmRequest_DEACTIVATE:
		answer.Alarms = matching(s.alarms(), r)
		for _, a := range answer.Alarms {
			alarm := raftstore.Alarm{Kind: a.Alarm.String(), MemberID: s.nodeID(a.MemberID)}
			if err := s.member.ClearAlarm(ctx, alarm); err != nil {
				return nil, toStatus(err)
			}
		}
	default:
		return nil, status.Error(codes.Unimplemented, "kontiki: alarms cannot be raised by clients")
	}
	answer.Header = s.header.now()
	return answer, nil
}

// alarms are the alarms that are on, in etcd's words, which are those of raftstore.
func (s *Server) alarms() (list []*pb.AlarmMember) {
	for _, a := range s.member.Alarms() {
		list = append(list, &pb.AlarmMember{MemberID: memberID(a.MemberID), Alarm: pb.AlarmType(pb.AlarmType_value[a.Kind])})
	}
	return list
}

func matching(alarms []*pb.AlarmMember, r *pb.AlarmRequest) (list []*pb.AlarmMember) {
	for _, a := range alarms {
		if (r.MemberID == 0 || r.MemberID == a.MemberID) && (r.Alarm == pb.AlarmType_NONE || r.Alarm == a.Alarm) {
			list = append(list, a)
		}
	}
	return list
}
