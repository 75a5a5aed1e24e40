package api

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strictJSON refuses fields and names of values that the server does not know. Connect's own
// codec leaves them out, so that a misspelt one counts as the default.
type strictJSON struct{ name string }

func strict() connect.HandlerOption {
	return connect.WithHandlerOptions(connect.WithCodec(strictJSON{"json"}), connect.WithCodec(strictJSON{"json; charset=utf-8"}))
}

func (c strictJSON) Name() string { return c.name }

func (c strictJSON) Marshal(m any) ([]byte, error) { return c.MarshalAppend(nil, m) }

// MarshalAppend lets Connect use its buffers again.
func (strictJSON) MarshalAppend(to []byte, m any) ([]byte, error) {
	message, ok := m.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", m)
	}
	return protojson.MarshalOptions{}.MarshalAppend(to, message)
}

func (strictJSON) Unmarshal(data []byte, m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", m)
	}
	if len(data) == 0 {
		return errors.New("the body is empty: send a JSON object, such as {}")
	}
	return protojson.Unmarshal(data, message)
}
