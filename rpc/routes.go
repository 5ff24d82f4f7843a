package rpc

import (
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"noted/rpc/notedv1"
)

// route is what the descriptor says of a method.
type route struct {
	name      string // as "Pages.Edit", for the log
	roles     []Role // none: nobody
	stream    bool   // the server answers until the client leaves
	takesText bool   // the request may be large
}

func (r route) allows(role Role) bool { return slices.Contains(r.roles, role) }

// roleOf is the role that an option means. A role that is not here, as the
// unspecified one, opens nothing.
var roleOf = map[notedv1.ClientRole]Role{
	notedv1.ClientRole_CLIENT_ROLE_OWNER:   RoleOwner,
	notedv1.ClientRole_CLIENT_ROLE_BROWSER: RoleBrowser,
	notedv1.ClientRole_CLIENT_ROLE_AGENT:   RoleAgent,
	notedv1.ClientRole_CLIENT_ROLE_VIEWER:  RoleViewer,
}

// routes reads every method of the package from the compiled descriptors, by
// its path, so that no second list can disagree with the proto files.
func routes() map[string]route {
	table := map[string]route{}
	protoregistry.GlobalFiles.RangeFilesByPackage("noted.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				table["/"+string(service.FullName())+"/"+string(method.Name())] = newRoute(service, method)
			}
		}
		return true
	})
	return table
}

func newRoute(service protoreflect.ServiceDescriptor, method protoreflect.MethodDescriptor) route {
	r := route{
		name:      string(service.Name()) + "." + string(method.Name()),
		stream:    method.IsStreamingServer(),
		takesText: proto.GetExtension(method.Options(), notedv1.E_TakesText).(bool),
	}
	for _, o := range proto.GetExtension(method.Options(), notedv1.E_Roles).([]notedv1.ClientRole) {
		if role, ok := roleOf[o]; ok {
			r.roles = append(r.roles, role)
		}
	}
	return r
}

// mux routes authenticated requests to the services.
func mux(options ...connect.HandlerOption) http.Handler {
	m := http.NewServeMux()
	m.Handle(notedv1.NewPagesHandler(pagesService{}, options...))
	m.Handle(notedv1.NewFencesHandler(fencesService{}, options...))
	m.Handle(notedv1.NewAsksHandler(asksService{}, options...))
	m.Handle(notedv1.NewRunsHandler(runsService{}, options...))
	m.Handle(notedv1.NewDevicesHandler(devicesService{}, options...))
	m.Handle(notedv1.NewAgentsHandler(agentsService{}, options...))
	m.Handle(notedv1.NewEnginesHandler(enginesService{}, options...))
	m.Handle(notedv1.NewDaemonHandler(daemonService{}, options...))
	return m
}
