import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import net.schmizz.sshj.SSHClient;
import net.schmizz.sshj.connection.channel.direct.DirectConnection;
import net.schmizz.sshj.connection.channel.direct.Session;
import net.schmizz.sshj.connection.channel.forwarded.RemotePortForwarder;
import net.schmizz.sshj.connection.channel.forwarded.RemotePortForwarder.Forward;
import net.schmizz.sshj.connection.channel.forwarded.SocketForwardingConnectListener;
import net.schmizz.sshj.sftp.SFTPClient;
import net.schmizz.sshj.transport.verification.OpenSSHKnownHosts;

/**
 * Does what an IDE of JetBrains does on its way into a machine, and prints what came of each step.
 *
 * <p>Arguments: host, port, user, private key, known_hosts, directory to upload, port of an echo server in the task.
 */
public final class Ide {
    private static final int LIMIT_S = 60;

    private Ide() {}

    /** Log in, strict about the host's key, and take the steps. */
    public static void main(String[] given) throws Exception {
        try (SSHClient client = new SSHClient()) {
            client.addHostKeyVerifier(new OpenSSHKnownHosts(new File(given[4])));
            client.setConnectTimeout(LIMIT_S * 1000);
            client.connect(given[0], Integer.parseInt(given[1]));
            client.authPublickey(given[2], given[3]);
            probe(client);
            upload(client, Path.of(given[5]));
            forward(client, Integer.parseInt(given[6]));
            debug(client);
        } catch (IOException refused) {
            System.err.println(refused.getMessage());
            System.exit(1);
        }
    }

    private static void probe(SSHClient client) throws Exception {
        try (Session session = client.startSession()) {
            session.allocateDefaultPTY();
            System.out.println("probe " + ended(session.exec("uname -sm")));
        }
        try (Session session = client.startSession()) {
            System.out.println("failed " + ended(session.exec("echo told; echo apart >&2; exit 7")));
        }
        try (Session session = client.startSession()) {
            Session.Command command = session.exec("kill -TERM $$");
            command.join(LIMIT_S, TimeUnit.SECONDS);
            System.out.println("killed " + command.getExitSignal());
        }
    }

    private static String ended(Session.Command command) throws Exception {
        String said = read(command.getInputStream()).strip();
        command.join(LIMIT_S, TimeUnit.SECONDS);
        return command.getExitStatus() + " " + said;
    }

    private static void upload(SSHClient client, Path files) throws Exception {
        try (SFTPClient sftp = client.newSFTPClient()) {
            String home = sftp.canonicalize(".");
            sftp.put(files.toString(), home + "/backend");
            System.out.println("uploaded " + sftp.ls(home + "/backend").size());
            Path back = Files.createTempFile("ide", "");
            File first = files.resolve("0").toFile();
            sftp.get(home + "/backend/0", back.toString());
            System.out.println("same " + Arrays.equals(Files.readAllBytes(first.toPath()), Files.readAllBytes(back)));
            Files.delete(back);
        }
    }

    private static void forward(SSHClient client, int port) throws Exception {
        String here = InetAddress.getLoopbackAddress().getHostAddress();
        try (DirectConnection through = client.newDirectConnection(here, port)) {
            through.getOutputStream().write("through the tunnel".getBytes(StandardCharsets.UTF_8));
            through.getOutputStream().flush();
            System.out.println("echoed " + read(through.getInputStream()));
        }
        try {
            client.newDirectConnection(here, 1);
            System.out.println("refused nothing");
        } catch (net.schmizz.sshj.connection.channel.OpenFailException refused) {
            System.out.println("refused " + refused.getReason());
        }
    }

    /**
     * The program that is debugged connects to the IDE, by a port that is opened in the task for it. Both directions
     * stay open: sshj up to 0.40 closes a connection as a whole when one of them ends (its issue 1048).
     */
    private static void debug(SSHClient client) throws Exception {
        InetAddress here = InetAddress.getLoopbackAddress();
        try (ServerSocket ide = new ServerSocket(0, 1, here)) {
            ide.setSoTimeout(LIMIT_S * 1000);
            RemotePortForwarder tunnels = client.getRemotePortForwarder();
            InetSocketAddress place = new InetSocketAddress(here, ide.getLocalPort());
            Forward opened = tunnels.bind(new Forward("127.0.0.1", 0), new SocketForwardingConnectListener(place));
            String program =
                    "import socket; s = socket.create_connection(('127.0.0.1', " + opened.getPort() + ")); "
                            + "f = s.makefile('rw'); print('by the debugger', file=f, flush=True); print(f.readline())";
            try (Session session = client.startSession()) {
                Session.Command command = session.exec("python3 -c \"" + program + "\"");
                try (Socket debugged = ide.accept()) {
                    InputStreamReader said = new InputStreamReader(debugged.getInputStream(), StandardCharsets.UTF_8);
                    System.out.println("called back " + new BufferedReader(said).readLine());
                    debugged.getOutputStream().write("go on\n".getBytes(StandardCharsets.UTF_8));
                }
                System.out.println("told " + ended(command));
            }
            tunnels.cancel(opened);
        }
    }

    private static String read(InputStream from) throws Exception {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        from.transferTo(all);
        return all.toString(StandardCharsets.UTF_8);
    }
}
