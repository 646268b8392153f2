package joining

import certificatesv1 "k8s.io/api/certificates/v1"

// LeftToPeople is a condition of a signing request that Kubernetes does not have: the controller that approves what machines
// ask for does not approve this one, its message says why. Somebody else may, or another time it does.
const LeftToPeople certificatesv1.RequestConditionType = "kontiki.io/LeftToPeople"
