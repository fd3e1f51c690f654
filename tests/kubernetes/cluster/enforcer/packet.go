package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	v1 "k8s.io/api/core/v1"
)

// connection is what the first packet of one tells of it.
type connection struct {
	from, to string
	port     int
	protocol v1.Protocol
}

func (c connection) String() string {
	return fmt.Sprintf("%s -> %s:%d/%s", c.from, c.to, c.port, c.protocol)
}

// Source: IANA, "Protocol Numbers".
var protocols = map[byte]v1.Protocol{6: v1.ProtocolTCP, 17: v1.ProtocolUDP, 132: v1.ProtocolSCTP}

// connectionOf reads an IPv4 packet; false for one of another protocol, or whose ports are not in it.
//
// Source: RFC 791, section 3.1. All three protocols have their ports first: source, then destination.
func connectionOf(packet []byte) (connection, bool) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return connection{}, false
	}
	protocol, known := protocols[packet[9]]
	ports := int(packet[0]&0x0f) * 4
	if !known || len(packet) < ports+4 {
		return connection{}, false
	}
	from, _ := netip.AddrFromSlice(packet[12:16])
	to, _ := netip.AddrFromSlice(packet[16:20])
	port := binary.BigEndian.Uint16(packet[ports+2:])
	return connection{from.String(), to.String(), int(port), protocol}, true
}
