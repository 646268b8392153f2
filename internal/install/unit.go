package install

import "fmt"

// unitText is the service of a role. KillMode=process and Delegate leave the pods, which are in cgroups of their own, alone
// when the service stops. A wrong flag (exit code 2) is not tried again. A server that waits for the others may take as
// long as they do to start.
func (l Layout) unitText(role Role) string {
	return fmt.Sprintf(`[Unit]
Description=Kontiki %[1]s
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart=%[2]s %[1]s --config %[3]s
Restart=always
RestartSec=2
RestartPreventExitStatus=2
TimeoutStartSec=infinity
TimeoutStopSec=60
KillMode=process
Delegate=yes
LimitNOFILE=1048576
LimitNPROC=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`, role, l.Program(), l.Config(role))
}
