package shim

import (
	"fmt"
	"os"
	"slices"
	"syscall"
)

// identity is who a container runs as. nil means: as the shim.
type identity struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups"`
}

// identityOf says who a spec wants to run as, or why that cannot be.
func identityOf(spec ContainerSpec) (*identity, error) {
	if spec.UID == nil && spec.GID == nil && len(spec.SupplementalGroups) == 0 {
		return nil, nil
	}
	own := identity{UID: os.Geteuid(), GID: os.Getegid()}
	want := own
	if spec.UID != nil {
		want.UID, want.GID = int(*spec.UID), 0
		if want.UID == own.UID {
			want.GID = own.GID
		}
	}
	if spec.GID != nil {
		want.GID = int(*spec.GID)
	}
	for _, g := range spec.SupplementalGroups {
		want.Groups = append(want.Groups, int(g))
	}
	if want.UID == own.UID && want.GID == own.GID && len(want.Groups) == 0 {
		return nil, nil
	}
	if own.UID == 0 {
		return &want, nil
	}

	groups, err := os.Getgroups()
	if err != nil {
		return nil, err
	}
	groups = append(groups, own.GID)
	if want.UID != own.UID {
		return nil, fmt.Errorf("run as user %d: only root may change the user, and this node runs as user %d: %w", want.UID, own.UID, os.ErrPermission)
	}
	for _, g := range append([]int{want.GID}, want.Groups...) {
		if !slices.Contains(groups, g) {
			return nil, fmt.Errorf("run with group %d: only root may change groups, and this node runs as user %d without that group: %w", g, own.UID, os.ErrPermission)
		}
	}
	if want.GID != own.GID {
		return nil, fmt.Errorf("run with group %d: only root may change the primary group, which is %d: %w", want.GID, own.GID, os.ErrPermission)
	}
	return nil, nil
}

func (i *identity) credential() *syscall.Credential {
	if i == nil {
		return nil
	}
	c := &syscall.Credential{Uid: uint32(i.UID), Gid: uint32(i.GID)}
	for _, g := range i.Groups {
		c.Groups = append(c.Groups, uint32(g))
	}
	return c
}
